package natsd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
)

const (
	// lookEach is the time between two looks at the store, and ill how many in a
	// row must find it ill before it is opened again: far less than the minute in
	// which all must be well again once there is space.
	lookEach = 4 * time.Second
	ill      = 3
	// leastSpace is with how many free bytes the disk counts as full: a record
	// must fit, and what a recovery writes.
	leastSpace = 1 << 20
	// probe is how many bytes must find room before the store is opened again.
	probe = 256 << 10
)

// watch opens the store again after the disk was full or ill. NATS itself
// refuses each record of a stream from its first failed write on, also when the
// disk is well again.
func (s *Server) watch(ctx context.Context) {
	looks := time.NewTicker(lookEach)
	defer looks.Stop()
	for found := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-looks.C:
		}
		err := healthy(s.current().Healthz)
		if err == nil {
			found = 0
			continue
		}
		if found++; found == ill {
			s.o.Log.Error("ALARM: the store takes no records; it is opened again once the disk can be written to", "store", s.o.Dir, "error", err)
		}
		if found >= ill {
			s.mend(ctx)
		}
	}
}

// mend opens the store again if the disk can be written to.
func (s *Server) mend(ctx context.Context) {
	err := s.writable()
	s.disk.Note(s.o.Log, time.Now(), err, "the disk of the store cannot be written to", "the disk of the store can be written to again", "store", s.o.Dir)
	if err != nil {
		return
	}
	if err := s.reopen(ctx); err != nil {
		// Another reason may be one that does not pass by itself.
		if s.opening.Due(time.Now()) || err.Error() != s.why {
			s.o.Log.Error("cannot open the store again; trying on", "store", s.o.Dir, "error", err)
		}
		s.why = err.Error()
		return
	}
	s.opening.Over()
	s.o.Log.Warn("the store was opened again and takes records", "store", s.o.Dir)
}

// writable tries to write to the disk.
func (s *Server) writable() error {
	path := filepath.Join(s.o.Dir, "probe")
	return errors.Join(durable.WriteFile(path, make([]byte, probe), 0o600), os.RemoveAll(path))
}

// reopen puts a new server in the place of the one that runs. Whoever was
// connected connects again by himself.
func (s *Server) reopen(ctx context.Context) error {
	s.marks.close()
	shutDown(s.current())
	if err := s.prepare(); err != nil {
		return err
	}
	return s.start(ctx, s.address)
}

func (s *Server) replace(by *server.Server, auth *authenticator) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nats, s.auth = by, auth
}

func (s *Server) current() *server.Server {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nats
}

func shutDown(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// space returns an error when the disk is full, also while nobody writes.
func (s *Server) space() error {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.o.Dir, &disk); err != nil {
		return fmt.Errorf("cannot look at the disk of the store: %w", err)
	}
	// Some file systems do not tell.
	if free := disk.Bavail * uint64(disk.Bsize); disk.Blocks > 0 && free < leastSpace { //nolint:gosec // a size is positive
		return fmt.Errorf("its store is on a disk that is full: %d bytes are free in %s", free, s.o.Dir)
	}
	return nil
}
