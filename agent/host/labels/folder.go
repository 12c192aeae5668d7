package labels

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/filewatch"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/smallfile"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// settle is how long after a change the files are read: a program that writes a file in place empties
// it first.
const settle = 200 * time.Millisecond

// Folder is the folder with the labels of a host. It need not exist. It is safe for concurrent use.
type Folder struct {
	Dir string
	// Given are the labels that no file changes.
	Given map[string]string
	Log   *slog.Logger

	mu sync.Mutex
	// last is what was read last, told are the problems that were logged.
	last []smallfile.File
	told []string
}

// Labels reads the folder and returns the labels in force. A folder that cannot be read is as it was
// before. Each problem is logged once.
func (f *Folder) Labels() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	files, err := list(f.Dir)
	if err != nil {
		files = f.last
	}
	labels, problems := merged(f.Given, files, os.Geteuid())
	f.last = files
	f.logProblems(append(problems, err))
	return labels
}

// list reads the files of a folder, by name, and of too many one more than may be there. A dot begins
// the name of a file that is being written.
func list(dir string) (files []smallfile.File, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the labels, which stay as they are: %w", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		if len(files) > maxFiles {
			return files, nil
		}
		if found, ok := smallfile.Read(filepath.Join(dir, entry.Name()), maxSize); ok {
			files = append(files, found)
		}
	}
	return files, nil
}

func (f *Folder) logProblems(problems []error) {
	var told []string
	for _, problem := range problems {
		if problem == nil {
			continue
		}
		text := message.CleanText(problem.Error())
		if told = append(told, text); !slices.Contains(f.told, text) {
			f.Log.Warn("a file of labels is not as it should be", "folder", f.Dir, "error", text)
		}
	}
	f.told = told
}

// Watch calls changed when it has begun and soon after each change of the folder, until ctx ends or the
// watch fails. A folder that appears or disappears is a change. changed does not block for long.
func (f *Folder) Watch(ctx context.Context, changed func()) error {
	for {
		err := f.watchAs(ctx, f.exists(), changed)
		if ctx.Err() != nil || !errors.Is(err, errOther) && !errors.Is(err, filewatch.ErrGone) {
			return err
		}
	}
}

// errOther means that the folder appeared or disappeared.
var errOther = errors.New("the folder is not as it was")

func (f *Folder) exists() bool {
	info, err := os.Stat(f.Dir)
	return err == nil && info.IsDir()
}

// watchAs watches the folder as long as it exists, or as long as it does not.
func (f *Folder) watchAs(parent context.Context, exists bool, changed func()) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	events := make(chan struct{}, 1)
	var telling sync.WaitGroup
	telling.Go(func() { f.tell(ctx, events, changed) })
	defer telling.Wait()
	defer cancel(nil)
	err := filewatch.Watch(ctx, []string{f.Dir}, func() {
		if f.exists() != exists {
			cancel(errOther)
		}
		select {
		case events <- struct{}{}:
		default:
		}
	})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// tell calls changed for events: at once for the first, and for those that follow once they have
// settled.
func (f *Folder) tell(ctx context.Context, events <-chan struct{}, changed func()) {
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-events:
		}
		if !first {
			select {
			case <-ctx.Done():
				return
			case <-time.After(settle):
			}
			select {
			case <-events: // What has happened meanwhile is read now.
			default:
			}
		}
		changed()
	}
}
