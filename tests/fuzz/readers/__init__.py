"""The registry: every reader of files and command lines of the project, by name."""

from tests.fuzz.readers import command_lines, data_scripts, directories, downstream, elmoc, pretrain

READERS = {
    reader.name: reader
    for room in (directories, elmoc, pretrain, downstream, data_scripts, command_lines)
    for reader in room.READERS
}
