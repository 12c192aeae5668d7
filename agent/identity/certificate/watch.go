package certificate

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/filewatch"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
)

const (
	// lookInterval is the time between two looks at the files without a change: the end
	// of a certificate comes nearer, and not each file system tells of changes.
	lookInterval = time.Minute
	// settle is the wait after a change: who replaces two files has replaced both by
	// then, as a rule.
	settle = time.Second
	// badLooks is how many looks must find the same fault before it is logged: who
	// replaces two files replaces one of them first.
	badLooks = 2
)

// watch calls look when one of the files changes, and now and then, until ctx ends.
func watch(ctx context.Context, files []string, log *slog.Logger, look func(now time.Time)) {
	changed := wait.NewSignal()
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { watchFolders(ctx, files, log, changed.Set) })
	looks := time.NewTicker(lookInterval)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			_ = wait.Sleep(ctx, settle)
		case <-looks.C:
		}
		look(time.Now())
	}
}

// watchFolders calls changed after changes beside the files, until ctx ends. What has
// changed may have any name: in a mounted secret of Kubernetes the files are links
// through a link that is replaced.
func watchFolders(ctx context.Context, files []string, log *slog.Logger, changed func()) {
	folders := make([]string, len(files))
	for i, file := range files {
		folders[i] = filepath.Dir(file)
	}
	var failing throttle.Failing
	for {
		err := filewatch.Watch(ctx, folders, changed)
		if ctx.Err() != nil {
			return
		}
		if failing.Due(time.Now()) {
			log.Warn("cannot watch the files of the certificate; they are read every "+lookInterval.String(), "error", err)
		}
		if wait.Sleep(ctx, lookInterval) != nil {
			return
		}
	}
}

// faults tell when a fault of the files is logged: once, and not before it has lasted.
type faults struct {
	// last is the fault that the last looks found, looks how many of them.
	last  string
	looks int
}

// persists notes a fault, and reports whether it is to be logged now.
func (f *faults) persists(err error) bool {
	if text := err.Error(); f.last != text {
		*f = faults{last: text}
	}
	f.looks++
	return f.looks == badLooks
}
