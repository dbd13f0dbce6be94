"""What `convert` did, in words."""

from typing import Any


def describe(report: dict[str, Any]) -> str:
    """Say in a few lines what `convert` did.

    Parameters
    ----------
    report : dict
        What `convert` returned.

    Returns
    -------
    str
        Lines for people, without a line end after the last.
    """
    dropped = {
        "bad lines skipped": report["bad_lines_skipped"],
        "lines with more fields than the first, which were not used": report["extra_fields"],
        "self loops dropped": report["self_loops"],
        "zero weights dropped": report["zero_weights"],
        f"repeated rows merged ({report['duplicates']})": report["repeated_rows"],
        "pairs given in both directions": report["both_directions"],
        "pairs cancelled to zero": report["cancelled_pairs"],
    }
    value = "signed weights" if report["kind"] == "signed" else "distances"
    return "\n".join(
        [
            f"{report['file']}: {report['format']}, {_header(report)}{report['rows']:,} rows",
            f"  {_columns(report)}",
            *(f"  {count:,} {what}" for what, count in dropped.items() if count),
            f"  {report['nodes']:,} nodes ({_labels(report)}), {report['edges']:,} edges, "
            f"{value} from {report['value_min']:g} to {report['value_max']:g}",
        ]
    )


def _header(report: dict[str, Any]) -> str:
    if report["format"] in ("Parquet", "Matrix Market"):
        return ""
    return f"header {','.join(report['header'])}, " if report["header"] else "no header, "


def _columns(report: dict[str, Any]) -> str:
    """Which columns were used for what."""
    told = [
        f"{column['name']} (column {column['position']})" if column["name"] else f"column {column['position']}"
        for column in report["columns"]
    ]
    what = "weight" if report["kind"] == "signed" else "distance"
    value = f"{what} {told[2]}" if len(told) > 2 else f"no column for the {what}, it is 1 everywhere"
    unused = f"; not used: {', '.join(report['unused_columns'])}" if report["unused_columns"] else ""
    return f"nodes {told[0]} and {told[1]}, {value}{unused}"


def _labels(report: dict[str, Any]) -> str:
    because = f", as {report['text_because']}" if report["text_because"] else ""
    return f"{report['labels']} labels{because}"
