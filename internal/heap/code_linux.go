package heap

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// unmapCode takes the pages of the program's file that it did not change out of the
// memory of the process. A start and a burst run through most of the code and its
// tables; an idle process runs a fifth. The page cache keeps the pages, and the next use
// maps them again. A mapping with a page that was changed stays: the addresses in the
// tables of a position-independent program are filled in at its start, and the file
// does not have them.
func unmapCode() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close() //nolint:errcheck // it was read
	var low, high uint64
	var ours bool
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// A mapping begins with its addresses, permissions, offset, device, inode and path.
		switch part := strings.Fields(lines.Text()); {
		case len(part) >= 5 && strings.Contains(part[0], "-"):
			from, to, _ := strings.Cut(part[0], "-")
			low, _ = strconv.ParseUint(from, 16, 64)
			high, err = strconv.ParseUint(to, 16, 64)
			ours = err == nil && low > 0 && len(part) == 6 && part[5] == program && (part[1] == "r-xp" || part[1] == "r--p")
		case ours && len(part) == 3 && part[0] == "Anonymous:" && part[1] == "0":
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(low), uintptr(high-low), unix.MADV_DONTNEED) // advice
		}
	}
}
