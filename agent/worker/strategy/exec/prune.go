package exec

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// keptRuns is of how many runs the output is kept, besides the current one.
const keptRuns = 20

// prune removes the output of runs long past.
func (s *Strategy) prune(current uint64) error {
	entries, err := os.ReadDir(s.outputPath(""))
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	for _, name := range obsolete(names, current) {
		if err := os.Remove(s.outputPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// obsolete picks the files of all runs but the latest ones and the current.
// What is not of a run stays.
func obsolete(names []string, current uint64) []string {
	byRun := map[uint64][]string{}
	for _, name := range names {
		number, _, ok := strings.Cut(name, "-")
		if run, err := strconv.ParseUint(number, 10, 64); ok && err == nil && run != current {
			byRun[run] = append(byRun[run], name)
		}
	}
	runs := make([]uint64, 0, len(byRun))
	for run := range byRun {
		runs = append(runs, run)
	}
	slices.SortFunc(runs, func(a, b uint64) int { return cmp.Compare(b, a) })
	var old []string
	for _, run := range runs[min(len(runs), keptRuns):] {
		old = append(old, byRun[run]...)
	}
	slices.Sort(old)
	return old
}
