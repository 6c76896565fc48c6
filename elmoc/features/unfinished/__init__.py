"""Unfinished feature files: how one is written so that a killed process can be gone on with, to the same file.

    disk_file   the file that HDF5 writes to
    changes     what HDF5 changes in the part of it that is kept
    notes       what a layout remembers of the sentences
    folder      the folder with all of these, and the record of how far they go

A feature file grows in a hidden folder beside its name. At a checkpoint everything is handed to the disk, and the
record says how large each part is then. From there on the file is only added to: what HDF5 changes in the part that the
record counts (its index of datasets) goes into another file, page by page, and into its place at the next checkpoint.
So the file can be cut at any moment to what it was at the last checkpoint; that also holds when the machine fails.
"""

ANEW = "remove the folder that it is in to begin anew"
"""The advice for a file that a killed writer has left, where it cannot be used."""
