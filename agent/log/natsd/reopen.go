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

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
)

const (
	// checkInterval is the time between two health checks of the store, and
	// maxUnhealthy how many in a row may fail before it is reopened: together far
	// less than the minute in which a site must work again once there is space.
	checkInterval = 4 * time.Second
	maxUnhealthy  = 3
	// leastSpace is the number of free bytes below which the disk counts as full: a
	// record must fit, and what a recovery writes.
	leastSpace = 1 << 20
	// probe is how many bytes must fit on the disk before the store is reopened.
	probe = 256 << 10
)

// watch reopens the store after the disk was full or failed. NATS itself refuses
// every record of a stream after its first failed write, also once the disk works
// again.
func (s *Server) watch(ctx context.Context) {
	checks := time.NewTicker(checkInterval)
	defer checks.Stop()
	for unhealthy := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-checks.C:
		}
		err := awaitHealthy(s.current().Healthz)
		s.mu.Lock()
		s.found = err
		s.mu.Unlock()
		if err == nil {
			unhealthy = 0
			continue
		}
		if unhealthy++; unhealthy == maxUnhealthy {
			s.o.Log.Error("ALARM: the store takes no records; it is reopened once the disk can be written to", "store", s.o.Dir, "error", err)
		}
		if unhealthy >= maxUnhealthy {
			s.tryReopen(ctx)
		}
	}
}

// tryReopen reopens the store if the disk can be written to.
func (s *Server) tryReopen(ctx context.Context) {
	err := s.writable()
	s.disk.Note(s.o.Log, time.Now(), err, "the disk of the store cannot be written to", "the disk of the store can be written to again", "store", s.o.Dir)
	if err != nil {
		return
	}
	if err := s.reopen(ctx); err != nil {
		// Another error may be one that does not pass by itself.
		if s.opening.Due(time.Now()) || err.Error() != s.why {
			s.o.Log.Error("cannot reopen the store; trying again", "store", s.o.Dir, "error", err)
		}
		s.why = err.Error()
		return
	}
	s.opening.Over()
	s.o.Log.Warn("the store was reopened and takes records", "store", s.o.Dir)
}

// writable returns an error when the disk cannot be written to.
func (s *Server) writable() error {
	path := filepath.Join(s.o.Dir, "probe")
	return errors.Join(durable.WriteFile(path, make([]byte, probe), 0o600), os.RemoveAll(path))
}

// reopen replaces the server that runs by a new one. Clients reconnect by
// themselves.
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

// space returns an error when the disk is full, even if nobody writes.
func (s *Server) space() error {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.o.Dir, &disk); err != nil {
		return fmt.Errorf("cannot read the free space of the disk of the store: %w", err)
	}
	// Some file systems report no size.
	if free := disk.Bavail * uint64(disk.Bsize); disk.Blocks > 0 && free < leastSpace { //nolint:gosec // a size is positive
		return fmt.Errorf("its store is on a disk that is full: %d bytes are free in %s", free, s.o.Dir)
	}
	return nil
}
