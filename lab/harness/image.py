"""Disk images of the flavours, built when they are needed."""

import os
import subprocess
from dataclasses import dataclass

from . import LAB

INIT = {"bare": "/usr/sbin/lab-init", "systemd": "/sbin/init", "torch": "/sbin/init"}


class BuildFailed(Exception):
    """`lab/build` has printed the reason; its status is 3 if this machine cannot make images."""

    def __init__(self, flavour, status):
        super().__init__(f"there is no {flavour} image (lab/build: status {status})")
        self.status = status


@dataclass(frozen=True)
class Image:
    flavour: str
    folder: str

    @staticmethod
    def ensure_built(flavour):
        """Builds the image if it is missing or out of date."""
        build = subprocess.run(
            [os.path.join(LAB, "build"), flavour], stdout=subprocess.PIPE, text=True
        )
        if build.returncode:
            raise BuildFailed(flavour, build.returncode)
        return Image(flavour, build.stdout.strip())

    @property
    def init(self):
        return INIT[self.flavour]

    @property
    def recipe(self):
        """A hash that identifies the image."""
        return os.path.basename(self.folder)

    def file(self, name):
        return os.path.join(self.folder, name)
