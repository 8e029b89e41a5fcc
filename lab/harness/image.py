"""A built image, by flavour."""

import os
import subprocess
from dataclasses import dataclass

from . import LAB

INIT = {"bare": "/usr/sbin/lab-init", "systemd": "/sbin/init", "torch": "/sbin/init"}


class CannotBuild(Exception):
    """`lab/build` has told why on stderr; its status is 3 where this machine cannot make images."""

    def __init__(self, flavour, status):
        super().__init__(f"there is no {flavour} image (lab/build: status {status})")
        self.status = status


@dataclass(frozen=True)
class Image:
    flavour: str
    folder: str

    @staticmethod
    def built(flavour):
        """Makes it first where it is missing or out of date."""
        build = subprocess.run(
            [os.path.join(LAB, "build"), flavour], stdout=subprocess.PIPE, text=True
        )
        if build.returncode:
            raise CannotBuild(flavour, build.returncode)
        return Image(flavour, build.stdout.strip())

    @property
    def init(self):
        return INIT[self.flavour]

    @property
    def recipe(self):
        """Changes whenever the image does."""
        return os.path.basename(self.folder)

    def file(self, name):
        return os.path.join(self.folder, name)
