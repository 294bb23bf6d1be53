"""The fault campaign: kills, full disks, failing reads, damaged files and rival processes, with a seed and a budget."""
