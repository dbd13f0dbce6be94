"""Clients of object stores: few verbs, and a put that happens only if the object is still the one that was read.

Such a conditional put is a compare-and-swap: ``If-Match`` with the ETag that was read (on GCS the generation), or
``If-None-Match: *`` for an object that must not exist yet. obstore serves it on S3, GCS and Azure. fsspec,
which knows many more stores, has none.
"""

import contextlib
import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from ..errors import InputError

# Addresses that obstore serves, by scheme, with the name it has for them.
SERVED = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "abfs", "abfss": "abfss"}
S3_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
# Any of these says where S3 credentials come from; without one, boto3 may know a profile.
S3_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)

Version = dict[str, Any]


class Refused(Exception):
    """A conditional put did not happen: the object is another one than the one named, or exists already."""


class Missing(OSError):
    """The store has no such object."""


class Client(Protocol):
    """What a mirror asks of a store; names are relative to the address of the workspace."""

    def read(self, name: str) -> tuple[bytes, Version]:
        """Content and version of an object, or `Missing`."""

    def send(self, name: str, file: Path) -> None:
        """Put a file, whatever is there."""

    def put_if(self, name: str, body: bytes, version: Version | None) -> None:
        """Put ``body`` if the object has this version (None: if there is none), or raise `Refused`."""

    def sizes(self) -> dict[str, int]:
        """Every object, with its size."""

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; those that are gone already do not matter."""

    def probe(self, name: str) -> None:
        """Before the first put: find out whether conditions are kept, and warn if not; ``name`` is free to use."""


def connect(url: str) -> Client:
    """The client for an address.

    Parameters
    ----------
    url : str
        Such as ``s3://bucket/run.pf``.

    Raises
    ------
    InputError
        If no client for this kind of address is installed, or the options of the store cannot be used.
    """
    scheme, rest = url.split("://", 1)
    if scheme in SERVED:
        place, _, root = rest.partition("/")
        return ObstoreClient(url, _open_store(url, f"{SERVED[scheme]}://{place}"), root)
    return FsspecClient(url)


def _open_store(url: str, address: str) -> Any:
    """The store of obstore behind an address without a path."""
    store = _obstore().store
    options = _s3_options(url) if address.startswith("s3:") else {}
    try:
        return store.from_url(address, **options)
    except (_obstore().exceptions.BaseError, ValueError) as error:
        raise InputError(f"{url}: this store cannot be used ({_brief(error)})") from error


def _obstore() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise InputError("a workspace on a store needs obstore: pip install 'ooc_pf[store]'") from None
    return obstore


def _s3_options(url: str) -> dict[str, Any]:
    """What obstore does not find in the environment by itself."""
    options: dict[str, Any] = {}
    if next((os.environ[name] for name in S3_ENDPOINTS if os.environ.get(name)), "").startswith("http://"):
        options["client_options"] = {"allow_http": True}
    if not any(os.environ.get(name) for name in S3_CREDENTIALS):
        try:
            from obstore.auth.boto3 import Boto3CredentialProvider

            with contextlib.suppress(ValueError):  # boto3 knows of none either: obstore asks the machine it runs on
                options["credential_provider"] = Boto3CredentialProvider()
        except ImportError:
            if os.environ.get("AWS_PROFILE"):
                raise InputError(
                    f"{url}: AWS_PROFILE is set, and reading a profile needs boto3: pip install boto3, "
                    "or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                ) from None
    return options


def _brief(error: Exception) -> str:
    """The message of an error of obstore, without its internals."""
    return " ".join(str(error).split("\n\nDebug source")[0].split())


_warned: set[str] = set()


def _warn_once(url: str, why: str) -> None:
    store = "/".join(url.split("/")[:3])
    if store not in _warned:
        _warned.add(store)
        warnings.warn(
            f"{url}: {why}, so two processes that write this workspace at the same time are not kept apart: "
            "see to it that only one does",
            stacklevel=2,
        )


class ObstoreClient:
    """S3, GCS and Azure through obstore."""

    def __init__(self, url: str, store: Any, root: str):
        self.url, self._store, self._root = url, store, root.strip("/")
        self._obs = _obstore()
        self._conditions: bool | None = None  # whether the store keeps them, once that is known

    def read(self, name: str) -> tuple[bytes, Version]:
        with self._translated(name):
            got = self._obs.get(self._store, self._key(name))
            return bytes(got.bytes()), {key: got.meta[key] for key in ("e_tag", "version") if got.meta[key]}

    def send(self, name: str, file: Path) -> None:
        with self._translated(name):
            self._obs.put(self._store, self._key(name), file, max_concurrency=2)

    def put_if(self, name: str, body: bytes, version: Version | None) -> None:
        if self._conditions is False:
            compare(self, name, version)
        mode = "overwrite" if self._conditions is False else "create" if version is None else version
        try:
            with self._translated(name):
                self._obs.put(self._store, self._key(name), body, mode=mode, use_multipart=False)
        except Missing as error:
            # S3 answers 404 to a put that names a version of an object that is gone; or the bucket is.
            raise (Refused if version is not None else OSError)(str(error)) from error

    def sizes(self) -> dict[str, int]:
        skip = len(self._key(""))
        with self._translated(""):
            pages = self._obs.list(self._store, prefix=self._root or None, chunk_size=1000)
            return {about["path"][skip:]: about["size"] for page in pages for about in page}

    def delete(self, names: Iterable[str]) -> None:
        keys = [self._key(name) for name in names]
        if not keys:
            return
        with self._translated(""):
            try:
                self._obs.delete(self._store, keys)
            except FileNotFoundError:
                for key in keys:
                    with contextlib.suppress(FileNotFoundError):
                        self._obs.delete(self._store, key)

    def probe(self, name: str) -> None:
        if self._conditions is None:
            with contextlib.suppress(Refused, NotImplementedError):  # refused: the answer to a first try was lost
                self.put_if(name, b"", None)
            try:
                self.put_if(name, b"", {"e_tag": '"none"', "version": "1"})
            except Refused:
                self._conditions = True
                return
            except NotImplementedError:
                pass
            self._conditions = False
        if not self._conditions:
            _warn_once(self.url, "this store takes no conditional puts (If-Match)")

    def _key(self, name: str) -> str:
        return f"{self._root}/{name}" if self._root else name

    @contextlib.contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        """Errors of obstore as those of this module; what is not foreseen is an OSError that names the object."""
        errors = self._obs.exceptions
        try:
            yield
        except FileNotFoundError as error:
            raise Missing(f"{self.url}: no object {name!r} ({_brief(error)})") from error
        except (errors.PreconditionError, errors.AlreadyExistsError) as error:
            raise Refused(f"{self.url}: {name!r} has changed") from error
        except (errors.PermissionDeniedError, errors.UnauthenticatedError) as error:
            raise OSError(
                f"{self.url}: the store refuses access to {name!r} ({_brief(error)}); check the credentials"
            ) from error
        except errors.BaseError as error:
            raise OSError(
                f"{self.url}: the store failed at {name!r} ({_brief(error)}); check address and network, then try again"
            ) from error


class FsspecClient:
    """Every other store, through fsspec; it compares before it puts, which leaves a gap between the two."""

    def __init__(self, url: str):
        try:
            import fsspec
        except ImportError:
            raise InputError("a workspace on this store needs fsspec: pip install 'ooc_pf[store]'") from None
        try:
            self._fs, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise InputError(f"{url}: this kind of store is not available ({error})") from error
        self.url, self._root = url, root.rstrip("/")

    def read(self, name: str) -> tuple[bytes, Version]:
        try:
            body = self._fs.cat_file(f"{self._root}/{name}")
        except FileNotFoundError as error:
            raise Missing(f"{self.url}: no object {name!r}") from error
        return body, {"body": body}

    def send(self, name: str, file: Path) -> None:
        self._fs.makedirs(f"{self._root}/{name}".rsplit("/", 1)[0], exist_ok=True)
        self._fs.put_file(str(file), f"{self._root}/{name}")

    def put_if(self, name: str, body: bytes, version: Version | None) -> None:
        compare(self, name, version)
        self._fs.makedirs(self._root, exist_ok=True)
        self._fs.pipe_file(f"{self._root}/{name}", body)

    def sizes(self) -> dict[str, int]:
        self._fs.invalidate_cache()
        try:
            found = self._fs.find(self._root, detail=True)
        except FileNotFoundError:
            return {}
        return {name[len(self._root) + 1 :]: about["size"] for name, about in found.items()}

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self._fs.rm_file(f"{self._root}/{name}")

    def probe(self, name: str) -> None:
        _warn_once(self.url, "addresses of this kind are served by fsspec, which knows no conditional puts")


def compare(client: Client, name: str, version: Version | None) -> None:
    """Raise `Refused` unless the object has this version now."""
    try:
        found = client.read(name)[1]
    except Missing:
        found = None
    if found != version:
        raise Refused(f"{name!r} has changed")


def plainly(path: str, flags: int) -> int:
    """Opener of a file that must not be a symbolic link."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
