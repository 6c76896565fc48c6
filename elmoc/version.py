"""Which version of elmoc is this?"""

VERSION = "0.1.0"
