package exec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fsnotify/fsnotify"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

const outputFolder = "output"

// output is where a script prints to, and what was seen of it.
type output struct {
	// log takes all that is printed, but for the standard output of versions.
	log *os.File
	// printed takes that; it is nil for every other action.
	printed *os.File
	tail    *tail
	watcher *fsnotify.Watcher
}

// openOutput opens the files of one script. What they hold already, of an
// earlier attempt, is not followed. Word of it is left in the lock file first, so
// that whoever waits for this script finds them.
func (s *Strategy) openOutput(a action, job strategy.Job, lock *os.File) (*output, error) {
	h := holder{a, job.Run}
	if err := errors.Join(s.prune(job.Run), leaveWord(lock, h)); err != nil {
		return nil, err
	}
	out, err := s.openLog(h, os.O_CREATE, job.Progress)
	if err != nil {
		return nil, err
	}
	if a != actionVersions {
		return out, nil
	}
	if err := out.openPrinted(s.outputPath("versions.out")); err != nil {
		return nil, errors.Join(err, out.close())
	}
	return out, nil
}

// openLog opens the log of one script and follows it from its present end.
func (s *Strategy) openLog(h holder, flags int, progress func(int, string)) (*output, error) {
	log, err := os.OpenFile(s.outputPath(logName(h)), os.O_RDWR|os.O_APPEND|flags, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := log.Stat()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot follow output: %w", err), log.Close())
	}
	out := &output{log: log, tail: newTail(log, info.Size(), s.output, progress), watcher: watcher}
	if err := watcher.Add(log.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot follow output: %w", err), out.close())
	}
	// What came before the watcher was there is not announced by it.
	out.tail.follow()
	return out, nil
}

// followEarlier follows a script that an earlier call has started. It is nil
// where there is nothing to follow: to wait is what counts.
func (s *Strategy) followEarlier(h holder, progress func(int, string)) *output {
	out, err := s.openLog(h, 0, progress)
	if err != nil {
		return nil
	}
	return out
}

func (o *output) openPrinted(path string) error {
	printed, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	o.printed = printed
	return o.watcher.Add(path)
}

func (s *Strategy) outputPath(name string) string {
	return filepath.Join(s.stateDir, outputFolder, name)
}

func logName(h holder) string {
	if h.Action == actionVersions {
		return "versions.log"
	}
	return strconv.FormatUint(h.Run, 10) + "-" + string(h.Action) + ".log"
}

func (o *output) stdout() *os.File {
	if o.printed != nil {
		return o.printed
	}
	return o.log
}

// changed tells that there is more to follow. It is nil for a nil output.
func (o *output) changed() <-chan fsnotify.Event {
	if o == nil {
		return nil
	}
	return o.watcher.Events
}

// missed tells that changes were missed, such as because there were too many at
// once. It is nil for a nil output.
func (o *output) missed() <-chan error {
	if o == nil {
		return nil
	}
	return o.watcher.Errors
}

// blame tells people why changes were missed, unless to look again makes up for
// it.
func (o *output) blame(err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		o.tail.fail(err)
	}
}

// follow reads what is new. The error is a script that must be ended for it.
func (o *output) follow() error {
	o.tail.follow()
	if o.printed == nil {
		return nil
	}
	info, err := o.printed.Stat()
	if err == nil && info.Size() > maxVersionsSize {
		err = fmt.Errorf("versions printed more than %d bytes; it should print one package and version a line", maxVersionsSize)
	}
	return err
}

// finish reads the rest once the script has ended.
func (o *output) finish() error {
	err := o.follow()
	o.tail.finish()
	return err
}

// parse hands over what versions printed.
func (o *output) parse(parse func([]byte) error) error {
	data, err := io.ReadAll(io.NewSectionReader(o.printed, 0, maxVersionsSize+1))
	if err == nil {
		err = parse(data)
	}
	if err != nil {
		return fmt.Errorf("cannot read what versions printed: %w", err)
	}
	return nil
}

func (o *output) close() error {
	err := errors.Join(o.watcher.Close(), o.log.Close())
	if o.printed != nil {
		err = errors.Join(err, o.printed.Close())
	}
	return err
}

// abandon closes an output that only was watched, if there is one.
func (o *output) abandon() {
	if o != nil {
		_ = o.close() // Nothing depends on what was only watched.
	}
}
