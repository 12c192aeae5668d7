// Package measure reads, for benchmarks, the memory and processor time of a process and the time
// that the machine itself takes for a synced write or a round trip. It says how much a benchmark
// measures: with -short next to nothing, which shows only that it still runs (make bench-smoke).
//
// It decides nothing, and no program imports it.
package measure

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// small is the size of a fleet with -short.
const small = 10

// Sizes returns the sizes of the fleets of a benchmark; with -short one small fleet.
func Sizes(sizes ...int) []int {
	if testing.Short() {
		return []int{small}
	}
	return sizes
}

// Size returns a number of hosts or records; with -short a small one.
func Size(size int) int { return Sizes(size)[0] }

// Span returns how long a benchmark looks at something; with -short a moment.
func Span(span time.Duration) time.Duration {
	if testing.Short() {
		return 100 * time.Millisecond
	}
	return span
}

// Resident returns the resident memory of a process in MiB; "self" is this
// process (proc(5)).
func Resident(process string) (float64, error) { return memory(process, "VmRSS") }

// Peak returns the largest resident memory that a process has had, in MiB.
func Peak(process string) (float64, error) { return memory(process, "VmHWM") }

func memory(process, name string) (float64, error) {
	text, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kib float64
		if _, err := fmt.Sscanf(line, name+": %f kB", &kib); err == nil {
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("the kernel does not report the memory of process %s", process)
}

// Ticks returns the processor time of a process in hundredths of a second
// (proc(5)).
func Ticks(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The program's name is in brackets and may contain any character.
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')')+1:])
	var user, system int
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return user + system, nil
}
