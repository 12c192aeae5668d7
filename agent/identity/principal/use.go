package principal

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// uses remember when each token was last used, to the minute. They are written together,
// once a minute and at the end: a request must not wait for a disk. A crash loses a
// minute of them.
type uses struct {
	stored credential.Store

	mu sync.Mutex
	// latest are those that are not stored yet.
	latest map[string]time.Time
}

// useName is the name of the entry that has them.
const useName = "tokens-used"

// useFile is what that entry holds.
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

// all returns when each token was last used.
func (u *uses) all() (map[string]time.Time, error) {
	body, err := u.stored.Get(useName)
	if err != nil {
		body = nil // It is for people, and decides nothing.
	}
	used, err := decodeUses(body)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.Copy(used, u.latest)
	return used, nil
}

// decodeUses reads the entry; without a body nothing was used. A damaged one is written anew.
func decodeUses(body []byte) (map[string]time.Time, error) {
	var file useFile
	err := format.TokenUse.Decode(body, &file)
	switch {
	case format.IsUnsupported(err):
		return nil, fmt.Errorf("cannot read when tokens were used: %w", err)
	case err != nil || file.Used == nil:
		return map[string]time.Time{}, nil //nolint:nilerr // see above
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
	err := u.stored.Change(useName, func(body []byte) ([]byte, error) {
		used, err := decodeUses(body)
		if err != nil {
			return nil, err
		}
		maps.Copy(used, latest)
		maps.DeleteFunc(used, func(id string, _ time.Time) bool { return !exists(id) })
		next, err := format.TokenUse.Encode(useFile{Used: used})
		return append(next, '\n'), err
	})
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
