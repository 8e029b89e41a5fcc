"""Files from the package index that pip uses, by name and checksum.

pip itself is not asked to download: to learn what a source package needs it runs the package's
own `setup.py`, and this corpus is code of many strangers.
"""

import hashlib
import html
import http.client
import os
import re
import subprocess
import urllib.error
import urllib.request
from urllib.parse import urljoin

from . import tools

LINK = re.compile(r'<a\s[^>]*?href="([^"#]*)[^>]*>([^<]*)</a>', re.I)
SOURCE = re.compile(r"(.+)-[^-]+\.(?:tar\.gz|tar\.bz2|zip)$")
DEFAULT = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"
PATIENCE = 60
TRIES = 3


class Unavailable(Exception):
    """A file that cannot be fetched, and why."""


def package_of(file):
    """Returns the normalized package name of a wheel or source archive."""
    source = SOURCE.match(file)
    name = source.group(1) if source else file.split("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def links(page, base):
    """Returns the URLs on a package's page by file name."""
    return {
        html.unescape(name).strip(): urljoin(base, html.unescape(address))
        for address, name in LINK.findall(page)
    }


class Index:
    def __init__(self):
        self.address = None

    def download(self, file, sha256):
        """Returns the content of a file; raises Unavailable if it is missing or different."""
        page = f"{self.where()}/{package_of(file)}/"
        address = links(fetch(page).decode(), page).get(file)
        if address is None:
            raise Unavailable(f"the index has no {file}")
        content = fetch(address)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise Unavailable(f"{file} is not the file that corpus.toml names: its sha256 differs")
        return content

    def where(self):
        """Returns the index that pip is configured to use, or its default."""
        if self.address is None:
            python = tools.python()
            told = os.environ.get("PIP_INDEX_URL") or said(
                python, "-m", "pip", "config", "get", "global.index-url"
            )
            self.address = (told or said(python, "-c", DEFAULT)).rstrip("/")
        return self.address


def fetch(address):
    for tries_left in reversed(range(TRIES)):
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                return answer.read()
        except (OSError, http.client.HTTPException) as error:
            is_final = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if is_final or not tries_left:
                raise Unavailable(f"{address.rstrip('/').rsplit('/', 1)[-1]}: {error}") from error


def said(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""
