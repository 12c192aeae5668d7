package exec

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/filewatch"
)

const outputFolder = "output"

// output is the output of a script.
type output struct {
	// log is standard output and error; of an action that prints a result only standard
	// error.
	log *os.File
	// where says where that is, for people who write scripts; it is empty for a program's.
	where string
	// printed is the standard output of an action that prints a result, and most its
	// size; it is nil for other actions.
	printed *os.File
	most    int64
	action  action
	tail    *tail
	// changes tells that there may be new output, failed that none will be told any more.
	changes chan struct{}
	failed  chan error
	// unwatch ends the watch.
	unwatch context.CancelFunc
}

// openOutput opens the files of a script. Their present content, of an earlier
// attempt, is not followed. The holder is written to the lock file first, so that a
// call that waits for this script finds its output.
func (s *Strategy) openOutput(c call, lock *os.File) (*output, error) {
	h := holder{c.action, c.job.Run}
	if err := errors.Join(s.prune(c.job.Run), writeHolder(lock, h)); err != nil {
		return nil, err
	}
	out, err := s.openLog(h, os.O_CREATE, c.job.Progress)
	if err != nil {
		return nil, err
	}
	out.action, out.most = c.action, c.action.printed()
	if out.most > 0 {
		if out.printed, err = os.OpenFile(s.outputPath(string(c.action)+".out"), os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600); err != nil {
			return nil, errors.Join(err, out.close())
		}
	}
	out.watch()
	return out, nil
}

// openLog opens the log of a script, to be followed from its present end.
func (s *Strategy) openLog(h holder, flags int, progress func(int, string)) (*output, error) {
	log, err := os.OpenFile(s.outputPath(logName(h)), os.O_RDWR|os.O_APPEND|flags, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := log.Stat()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	where := ""
	if s.program == nil {
		where = ", output in " + log.Name()
	}
	return &output{
		log: log, where: where, tail: newTail(log, info.Size(), s.output, progress),
		changes: make(chan struct{}, 1), failed: make(chan error, 1), unwatch: func() {},
	}, nil
}

// watch tells of new output until close, the first time when the watch has begun.
func (o *output) watch() {
	paths := []string{o.log.Name()}
	if o.printed != nil {
		paths = append(paths, o.printed.Name())
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := filewatch.Watch(ctx, paths, func() {
			select {
			case o.changes <- struct{}{}:
			default: // What was told is not read yet.
			}
		})
		if ctx.Err() == nil {
			o.failed <- err
		}
	}()
	o.unwatch = func() { cancel(); <-ended }
}

// followEarlier follows the output of a script that an earlier call has started.
// It returns nil on an error, because following is optional.
func (s *Strategy) followEarlier(h holder, progress func(int, string)) *output {
	out, err := s.openLog(h, 0, progress)
	if err != nil {
		return nil
	}
	out.watch()
	return out
}

func (s *Strategy) outputPath(name string) string {
	return filepath.Join(s.stateDir, outputFolder, name)
}

func logName(h holder) string {
	if h.Action.printed() > 0 || h.Run == 0 {
		return string(h.Action) + ".log"
	}
	of := h.Action
	if of == actionPrepareRollback {
		of = actionPrepare // It is the prepare of its run.
	}
	return strconv.FormatUint(h.Run, 10) + "-" + string(of) + ".log"
}

func (o *output) stdout() *os.File {
	if o.printed != nil {
		return o.printed
	}
	return o.log
}

// changed reports new output. It is nil for a nil output.
func (o *output) changed() <-chan struct{} {
	if o == nil {
		return nil
	}
	return o.changes
}

// missed reports why new output is not reported any more. It is nil for a nil output.
func (o *output) missed() <-chan error {
	if o == nil {
		return nil
	}
	return o.failed
}

// follow reads new output. An error means that the script must be stopped.
func (o *output) follow() error {
	o.tail.follow()
	if o.printed == nil {
		return nil
	}
	info, err := o.printed.Stat()
	if err == nil && info.Size() > o.most {
		err = fmt.Errorf("%s printed more than %d bytes%s", o.action, o.most, o.action.advice())
	}
	return err
}

// finish reads the rest after the script has ended.
func (o *output) finish() error {
	err := o.follow()
	o.tail.finish()
	return err
}

// advice says what an action that prints too much should print.
func (a action) advice() string {
	if a == actionVersions {
		return "; it should print one package and version a line"
	}
	return ""
}

// parse passes what an action has printed to a parser.
func (o *output) parse(a action, parse func([]byte) error) error {
	data, err := io.ReadAll(io.NewSectionReader(o.printed, 0, o.most+1))
	if err == nil {
		err = parse(data)
	}
	if err != nil {
		return fmt.Errorf("cannot parse the output of %s: %w", a, err)
	}
	return nil
}

func (o *output) close() error {
	o.unwatch()
	err := o.log.Close()
	if o.printed != nil {
		err = errors.Join(err, o.printed.Close())
	}
	return err
}

// abandon closes the output of an earlier script, if there is one.
func (o *output) abandon() {
	if o != nil {
		_ = o.close() // It was only read, so an error does not matter.
	}
}

// keptRuns is the number of runs whose output is kept, besides the current run.
const keptRuns = 20

// prune removes the output of old runs.
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

// obsolete returns the files of all runs except the latest ones and the current
// run. Files that belong to no run stay.
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

// readOutput returns the last bytes of a file without its plans, and whether it has more;
// nothing of a file that does not exist. A plan is told beside the output, and is no
// text for people.
func readOutput(path string, limit int) (end []byte, cut bool, err error) {
	all, cut, err := readEnd(path, limit+maxPlanLine)
	shown := make([]byte, 0, min(len(all), limit))
	for line := range bytes.Lines(all) {
		if !isPlanLine(line) {
			shown = append(shown, line...)
		}
	}
	if over := len(shown) - limit; over > 0 {
		return shown[over:], true, err
	}
	return shown, cut, err
}

// readEnd returns the last bytes of a file, and whether it has more; nothing of a file
// that does not exist.
func readEnd(path string, limit int) (end []byte, cut bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, false, err
	}
	from := max(0, info.Size()-int64(limit))
	end, err = io.ReadAll(io.NewSectionReader(file, from, int64(limit)))
	return end, from > 0, err
}
