package exec

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
)

const (
	procFolder = "/proc"
	// maxNamed bounds how many processes an error names.
	maxNamed = 5
)

// lockedBy names the processes, other than this one, that have the lock file
// open. It reads /proc and names none where that is not to be had.
func lockedBy(lock *os.File) []string {
	info, err := lock.Stat()
	if err != nil {
		return []string{"an unknown process"}
	}
	links, err := filepath.Glob(filepath.Join(procFolder, "[0-9]*", "fd", "*"))
	if err != nil {
		return []string{"an unknown process"}
	}
	var pids []int
	for _, link := range links {
		pid := processOf(link)
		target, err := os.Stat(link)
		if err == nil && os.SameFile(info, target) && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return nameProcesses(slices.Compact(pids))
}

// processOf is the process of a path such as /proc/7/fd/8.
func processOf(link string) int {
	pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
	if err != nil {
		return 0
	}
	return pid
}

func nameProcesses(pids []int) []string {
	if len(pids) == 0 {
		return []string{"an unknown process"}
	}
	var names []string
	for _, pid := range pids[:min(len(pids), maxNamed)] {
		name := "process " + strconv.Itoa(pid)
		if command, err := os.ReadFile(filepath.Join(procFolder, strconv.Itoa(pid), "comm")); err == nil {
			name += fmt.Sprintf(" (%s)", script.Clean([]byte(strings.TrimSpace(string(command)))))
		}
		names = append(names, name)
	}
	if more := len(pids) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return names
}
