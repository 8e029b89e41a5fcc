# cause: none
# ask: 80
"""Data that comes slowly, a few bytes at a time."""
import http.server
import os
import time
import urllib.request


class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b"data")
            time.sleep(0.1)

    def log_message(self, *words):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Slow)
if os.fork() == 0:
    server.serve_forever()
print("now", flush=True)
with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/") as data:
    while data.read(4):
        pass
