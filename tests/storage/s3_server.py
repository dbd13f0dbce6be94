"""A small stand-in for S3 on loopback, which can be slow, lose answers, and answer late.

It knows what the client uses: PUT, GET (with ranges), HEAD and DELETE of objects, DeleteObjects, ListObjectsV2 in
pages, multipart uploads, ETags, If-Match and If-None-Match. A condition and its put are one step, as on S3.
"""

import contextlib
import hashlib
import random
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

PAGE = 100  # objects a listing
HANG = 10.0  # seconds


@dataclass
class Faults:
    """How often what goes wrong with conditional puts; with other requests the first three, ``calm`` times as often."""

    refuse: float = 0.0  # 503, and nothing happened
    deny: float = 0.0  # 503, though it happened
    lose: float = 0.0  # it happened, and the connection is closed without an answer
    hang: float = 0.0  # it happened, and the answer takes longer than anyone waits
    late: float = 0.0  # the connection is closed without an answer, and it happens a moment later
    conflict: float = 0.0  # 409: another conditional put is under way
    delay: float = 0.0  # seconds at most, before and after
    calm: float = 0.1
    seed: int = 0
    script: list = field(default_factory=list)  # of the next puts of a manifest, one after the other, before any chance
    seen: dict = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self):
        self._dice = random.Random(self.seed)

    def pause(self):
        with self._lock:
            seconds = self._dice.random() * self.delay
        time.sleep(seconds)

    def draw(self, method, key, conditional):
        """What happens to a request: None, or the name of a fault."""
        if method == "PUT" and key.endswith("/manifest.json") and self.script:
            return self.script.pop(0)
        share = 1.0 if conditional else self.calm
        chances = {"refuse": share * self.refuse}
        if method not in ("GET", "HEAD"):
            chances |= {"deny": share * self.deny, "lose": share * self.lose}
        if conditional:
            chances |= {"late": self.late, "conflict": self.conflict, "hang": self.hang}
        with self._lock:
            left = self._dice.random()
            for name, chance in chances.items():
                left -= chance
                if left < 0:
                    self.seen[name] = self.seen.get(name, 0) + 1
                    return name
        return None


class S3Server:
    """Serves while it is entered; ``objects`` maps (bucket, key) to content."""

    def __init__(self, faults=None, conditions=True):
        self.objects, self.uploads, self.lock, self.closed = {}, {}, threading.Lock(), threading.Event()
        self.faults, self.conditions, self.log = faults or Faults(), conditions, []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads, self._http.s3 = True, self
        self.endpoint = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.closed.set()
        self._http.shutdown()
        self._http.server_close()

    def names(self, prefix=""):
        with self.lock:
            return sorted(key for _, key in self.objects if key.startswith(prefix))

    def put(self, place, body, headers):
        """One step: the condition, then the put."""
        with self.lock:
            old = self.objects.get(place)
            if self.conditions and headers.get("If-None-Match") == "*" and old is not None:
                return 412, {}, _error("PreconditionFailed")
            wanted = headers.get("If-Match")
            if self.conditions and wanted is not None and old is None:
                return 404, {}, _error("NoSuchKey")
            if self.conditions and wanted is not None and wanted.strip('"') != etag(old).strip('"'):
                return 412, {}, _error("PreconditionFailed")
            self.objects[place] = body
            return 200, {"ETag": etag(body)}, b""


def etag(body):
    return f'"{hashlib.md5(body).hexdigest()}"'


def _error(code):
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize, disable_nagle_algorithm = -1, True  # an answer is one packet

    def log_message(self, *_):
        pass

    def handle(self):
        with contextlib.suppress(ConnectionError):
            super().handle()

    def _serve(self):
        s3, faults = self.server.s3, self.server.s3.faults
        address = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(address.query, keep_blank_values=True))
        bucket, _, key = urllib.parse.unquote(address.path).lstrip("/").partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        conditional = "If-Match" in self.headers or self.headers.get("If-None-Match") == "*"
        s3.log.append((self.command, key))
        faults.pause()
        fault = faults.draw(self.command, key, conditional)
        if fault in ("refuse", "conflict"):
            code = (503, "SlowDown") if fault == "refuse" else (409, "ConditionalRequestConflict")
            return self._answer(code[0], {}, _error(code[1]))
        if fault == "late":
            threading.Timer(0.05 + faults.delay, s3.put, ((bucket, key), body, self.headers)).start()
            return self._hang_up()
        answer = getattr(self, f"_{self.command.lower()}")((bucket, key), query, body)
        faults.pause()
        if fault == "hang":
            s3.closed.wait(HANG)
        if fault in ("lose", "hang"):
            return self._hang_up()
        return self._answer(*((503, {}, _error("InternalError")) if fault == "deny" else answer))

    do_PUT = do_GET = do_HEAD = do_DELETE = do_POST = _serve

    def _hang_up(self):
        self.close_connection = True
        self.connection.close()

    def _answer(self, status, headers, body):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _put(self, place, query, body):
        s3 = self.server.s3
        if "uploadId" in query:
            with s3.lock:
                s3.uploads[query["uploadId"]][int(query["partNumber"])] = body
            return 200, {"ETag": etag(body)}, b""
        return s3.put(place, body, self.headers)

    def _head(self, place, query, body):
        return self._get(place, query, body)

    def _get(self, place, query, body):
        s3 = self.server.s3
        if query.get("list-type") == "2":
            return 200, {"Content-Type": "application/xml"}, self._list(place[0], query)
        with s3.lock:
            found = s3.objects.get(place)
        if found is None:
            return 404, {}, _error("NoSuchKey")
        headers = {"ETag": etag(found), "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}
        if self.headers.get("Range"):
            start, stop = self.headers["Range"].removeprefix("bytes=").split("-")
            part = found[int(start) : int(stop or len(found)) + 1]
            headers["Content-Range"] = f"bytes {start}-{int(start) + len(part) - 1}/{len(found)}"
            return 206, headers, part
        return 200, headers, found

    def _list(self, bucket, query):
        s3, prefix, after = self.server.s3, query.get("prefix", ""), query.get("continuation-token", "")
        with s3.lock:
            found = {k: v for (b, k), v in s3.objects.items() if b == bucket and k.startswith(prefix) and k > after}
        page = sorted(found)[:PAGE]
        more = len(found) > len(page)
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(found[key])}</Size><ETag>{escape(etag(found[key]))}</ETag>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in page
        )
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        whole = f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}"
        return f"<ListBucketResult>{whole}</ListBucketResult>".encode()

    def _delete(self, place, query, body):
        with self.server.s3.lock:
            self.server.s3.objects.pop(place, None)
        return 204, {}, b""

    def _post(self, place, query, body):
        s3 = self.server.s3
        if "delete" in query:
            keys = [e.text for e in ET.fromstring(body).iter() if e.tag.endswith("Key")]
            with s3.lock:
                for key in keys:
                    s3.objects.pop((place[0], key), None)
            done = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
            return 200, {}, f"<DeleteResult>{done}</DeleteResult>".encode()
        if "uploads" in query:
            with s3.lock:
                name = f"upload{len(s3.uploads)}"
                s3.uploads[name] = {}
            answer = f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>"
            return 200, {}, answer.encode()
        with s3.lock:
            parts = s3.uploads[query["uploadId"]]
            whole = b"".join(parts[number] for number in sorted(parts))
        status, headers, answer = s3.put(place, whole, self.headers)
        done = f"<CompleteMultipartUploadResult><ETag>{escape(etag(whole))}</ETag></CompleteMultipartUploadResult>"
        return (status, headers, done.encode()) if status == 200 else (status, headers, answer)
