#!/usr/bin/env python3
"""A receiver of webhooks: checks each signature, and prints what is new.

    osupgrade-agent webhook add local --url http://127.0.0.1:8080/ | grep ^whsec_ >secret
    python3 receiver.py 8080 secret
"""
import base64
import hashlib
import hmac
import http.server
import json
import sys
import time

TOLERANCE = 300  # seconds


def genuine(secret, headers, body, now):
    """Whether a delivery was signed by the secret, and is not an old one."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    stamp = headers.get("webhook-timestamp", "")
    if not stamp.isdecimal() or abs(now - int(stamp)) > TOLERANCE:
        return False
    signed = headers.get("webhook-id", "").encode() + b"." + stamp.encode() + b"." + body
    want = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # There are several while a secret is replaced.
    return any(hmac.compare_digest(want.encode(), given.encode()) for given in headers.get("webhook-signature", "").split())


class Receiver(http.server.BaseHTTPRequestHandler):
    secret, seen = "", set()

    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), 1 << 20))
        if not genuine(self.secret, self.headers, body, time.time()):
            self.send_error(401, "the signature is not that of the secret")
            return
        if self.headers["webhook-id"] not in self.seen:  # News may come twice, under the same id.
            self.seen.add(self.headers["webhook-id"])
            print(json.loads(body)["data"]["text"], flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    with open(sys.argv[2]) as file:
        Receiver.secret = file.read().strip()
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
