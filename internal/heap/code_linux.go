package heap

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapCode takes the pages of the program's file that it does not write out of the
// memory of the process. A start and a burst run through most of the code and its
// tables; an idle process runs a fifth. The page cache keeps the pages, and the next use
// maps them again.
func unmapCode() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close() //nolint:errcheck // it was read
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// A line is the addresses, permissions, offset, device, inode and path.
		part := strings.Fields(lines.Text())
		if len(part) != 6 || part[5] != program || part[1] != "r-xp" && part[1] != "r--p" {
			continue
		}
		low, high, _ := strings.Cut(part[0], "-")
		from, err := strconv.ParseUint(low, 16, 64)
		if err != nil {
			continue
		}
		to, err := strconv.ParseUint(high, 16, 64)
		if err != nil {
			continue
		}
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED) // advice
	}
}
