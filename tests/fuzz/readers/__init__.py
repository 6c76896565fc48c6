"""The registry: every reader of files and command lines of the project, by name."""

from tests.fuzz.readers import command_lines, data_scripts, directories, downstream, elmoc, interop, pretrain

READERS = {
    reader.name: reader
    for room in (directories, elmoc, interop, pretrain, downstream, data_scripts, command_lines)
    for reader in room.READERS
}
