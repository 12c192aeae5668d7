package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// maxTries bounds how often a write without a precondition is based anew on
// what somebody else wrote in between.
const maxTries = 5

// stored is a tenant's configuration as the store has it.
type stored struct {
	config   v1.OSUpgrade
	revision store.Revision
	exists   bool
}

func (s *server) stored(ctx context.Context, tenant string) (stored, error) {
	config, revision, err := s.Store.Config(ctx, tenant)
	if errors.Is(err, store.ErrNotFound) {
		return stored{}, nil
	}
	return stored{config: config, revision: revision, exists: err == nil}, err
}

func (st stored) tag() string { return etag(st.revision) }

func missing(c *call) error {
	return problem(http.StatusNotFound, "", "", "tenant %q has no os-upgrade configuration; create it with PUT", c.tenant)
}

// getConfig answers GET (AV-6, AV-8, AV-9).
func (s *server) getConfig(c *call) error {
	if err := query(c, "fields", "validate"); err != nil {
		return err
	}
	if _, err := flag(c, "validate"); err != nil {
		return err
	}
	now, err := s.stored(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	switch precondition(c.Method, c.Header, now.exists, now.tag()) {
	case http.StatusNotModified:
		c.w.Header().Set("ETag", now.tag())
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	case http.StatusPreconditionFailed:
		return mismatch(c, now)
	}
	if !now.exists {
		return missing(c)
	}
	c.w.Header().Set("ETag", now.tag())
	return s.sendFields(c, now.config)
}

func mismatch(c *call, now stored) error {
	if !now.exists {
		return problem(http.StatusPreconditionFailed, "", "", "tenant %q has no os-upgrade configuration, so If-Match cannot hold", c.tenant)
	}
	return problem(http.StatusPreconditionFailed, "", "", "the os-upgrade configuration of tenant %q is there with ETag %s; read it again before you change it", c.tenant, now.tag())
}

// putConfig answers PUT: 201 when new, 204 when replaced (AV-3).
func (s *server) putConfig(c *call) error {
	return s.write(c, func(body []byte, _ stored) (v1.OSUpgrade, error) {
		return v1.DecodeOSUpgrade(c.Header.Get("Content-Type"), body)
	})
}

// patchConfig answers PATCH: a list in the body replaces the one there, a list
// that is absent stays (AV-4, AV-22).
func (s *server) patchConfig(c *call) error {
	return s.write(c, func(body []byte, now stored) (v1.OSUpgrade, error) {
		change, err := v1.DecodeOSUpgrade(c.Header.Get("Content-Type"), body)
		if err != nil {
			return v1.OSUpgrade{}, err
		}
		if !now.exists {
			return v1.OSUpgrade{}, missing(c)
		}
		merged := now.config
		if change.WorkerApplications != nil {
			merged.WorkerApplications = change.WorkerApplications
		}
		if change.MaintenanceWindows != nil {
			merged.MaintenanceWindows = change.MaintenanceWindows
		}
		return merged, nil
	})
}

// write stores what next makes of the body and of what is there, in canonical
// spelling (AV-16), based on the revision that next saw (design.md 5,
// invariant 6).
func (s *server) write(c *call, next func(body []byte, now stored) (v1.OSUpgrade, error)) error {
	if err := query(c, "validate"); err != nil {
		return err
	}
	validate, err := flag(c, "validate")
	if err != nil {
		return err
	}
	body, err := io.ReadAll(c.Body)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		now, err := s.stored(c.Context(), c.tenant)
		if err != nil {
			return err
		}
		config, err := next(body, now)
		if err != nil {
			return err
		}
		if precondition(c.Method, c.Header, now.exists, now.tag()) != 0 {
			return mismatch(c, now)
		}
		if validate {
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}
		revision, err := s.Store.PutConfig(c.Context(), c.tenant, config.Canonical(), now.revision)
		if errors.Is(err, store.ErrConflict) && !conditional(c.Header) && try < maxTries {
			continue
		}
		if err != nil {
			return err
		}
		s.takeEffect(c, revision.Number)
		s.written(c, now.exists, revision)
		return nil
	}
}

// effectTimeout bounds the wait for a controller to see what was written.
const effectTimeout = 5 * time.Second

// takeEffect waits until the controller knows what was written, so that the
// client's next request finds it. It is stored in any case.
func (s *server) takeEffect(c *call, number uint64) {
	ctx, cancel := context.WithTimeout(c.Context(), effectTimeout)
	defer cancel()
	if err := c.controller.Configured(ctx, number); err != nil {
		s.Log.Warn("the controller has not seen the new configuration yet", "tenant", c.tenant, "error", err)
	}
}

func (s *server) written(c *call, existed bool, revision store.Revision) {
	s.Log.Info("configuration written", "tenant", c.tenant, "by", c.by, "revision", revision.String())
	c.w.Header().Set("ETag", etag(revision))
	if existed {
		c.w.WriteHeader(http.StatusNoContent)
		return
	}
	c.w.Header().Set("Location", c.URL.Path)
	c.w.WriteHeader(http.StatusCreated)
}

// deleteConfig answers DELETE; while a run is under way only with force
// (AV-5).
func (s *server) deleteConfig(c *call) error {
	if err := query(c, "validate", "force"); err != nil {
		return err
	}
	validate, err := flag(c, "validate")
	if err != nil {
		return err
	}
	force, err := flag(c, "force")
	if err != nil {
		return err
	}
	now, err := s.stored(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	if precondition(c.Method, c.Header, now.exists, now.tag()) != 0 {
		return mismatch(c, now)
	}
	if !now.exists {
		return missing(c)
	}
	if err := refuseDuringRun(c, force); err != nil {
		return err
	}
	if !validate {
		if err := s.Store.DeleteConfig(c.Context(), c.tenant, now.revision); err != nil {
			return err
		}
		// The deletion has a revision of its own, after the one deleted.
		s.takeEffect(c, now.revision.Number+1)
		s.Log.Info("configuration deleted", "tenant", c.tenant, "by", c.by)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func refuseDuringRun(c *call, force bool) error {
	current, err := c.controller.Current(c.Context())
	if err != nil || current == 0 || force {
		return err
	}
	return &run.Refused{Run: current, Message: fmt.Sprintf("run %d is under way; wait until it ends, or add force=true, which lets the run go on", current)}
}
