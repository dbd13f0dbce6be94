"""What may be asked of `convert`; apart from it, so that the command line can name the choices without any library."""

KINDS = ("distance", "signed")
POLICIES = ("mean", "sum", "sign", "first", "error")
BAD_LINES = ("error", "skip")
DELIMITERS = {"space": " ", "tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
