package principal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// uses remember when each token was last used, to the minute. They are written together,
// once a minute and at the end: a request must not wait for a disk. A crash loses a
// minute of them.
type uses struct {
	file string

	mu sync.Mutex
	// latest are those that are not in the file yet.
	latest map[string]time.Time
}

// useFile is what the file holds.
type useFile struct {
	Used map[string]time.Time `json:"used"`
}

// exactness is how exact the times are, and how often they are written.
const exactness = time.Minute

func (u *uses) note(id string, now time.Time) {
	at := now.UTC().Truncate(exactness)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.latest == nil {
		u.latest = map[string]time.Time{}
	}
	u.latest[id] = at
}

// all returns when each token was last used. The file is written by the site alone, also
// for a command that works on its folder.
func (u *uses) all() (map[string]time.Time, error) {
	used, err := u.read()
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.Copy(used, u.latest)
	return used, nil
}

func (u *uses) read() (map[string]time.Time, error) {
	body, err := os.ReadFile(u.file)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]time.Time{}, nil
	}
	var file useFile
	if err == nil {
		err = format.TokenUse.Decode(body, &file)
	}
	switch {
	case format.IsUnsupported(err):
		return nil, fmt.Errorf("cannot read when tokens were used, %s: %w", u.file, err)
	case err != nil:
		// It is for people, and decides nothing: a damaged one is written anew.
		return map[string]time.Time{}, nil //nolint:nilerr // see above
	case file.Used == nil:
		file.Used = map[string]time.Time{}
	}
	return file.Used, nil
}

// keep writes what has changed each minute, until ctx ends. exists reports whether there
// still is a token.
func (u *uses) keep(ctx context.Context, log *slog.Logger, exists func(id string) bool) {
	var failing throttle.Failing
	for ended := false; !ended; {
		ended = wait.Sleep(ctx, exactness) != nil
		failing.Note(log, time.Now(), u.write(exists), "cannot keep when tokens were used", "it is kept again when tokens are used")
	}
}

func (u *uses) write(exists func(id string) bool) error {
	u.mu.Lock()
	latest := u.latest
	u.latest = nil
	u.mu.Unlock()
	if len(latest) == 0 {
		return nil
	}
	used, err := u.read()
	if err == nil {
		maps.Copy(used, latest)
		maps.DeleteFunc(used, func(id string, _ time.Time) bool { return !exists(id) })
		err = u.put(used)
	}
	if err != nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		for id, at := range latest { // They are written later, unless newer ones are there.
			if u.latest == nil {
				u.latest = map[string]time.Time{}
			}
			if _, newer := u.latest[id]; !newer {
				u.latest[id] = at
			}
		}
	}
	return err
}

func (u *uses) put(used map[string]time.Time) error {
	body, err := format.TokenUse.Encode(useFile{Used: used})
	if err != nil {
		return err
	}
	return durable.WriteFile(u.file, append(body, '\n'), 0o600)
}
