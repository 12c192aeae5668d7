package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
)

// maxTries bounds how often a write without a precondition is based anew on
// what somebody else wrote in between.
const maxTries = 5

// object answers requests about an object of a tenant.
type object[T any] struct {
	server *server
	// noun is what people call it.
	noun string

	read func(ctx context.Context, tenant string) (T, store.Revision, error)
	put  func(ctx context.Context, tenant string, value T, base store.Revision) (store.Revision, error)
	// remove returns the revision of the deletion.
	remove func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error)

	decode func(contentType string, body []byte) (T, error)
	// patch merges a body of PATCH.
	patch     func(now T, contentType string, body []byte) (T, error)
	canonical func(T) T
	// inUse returns why the object cannot be deleted without force; nil when
	// it always can.
	inUse func(ctx context.Context, controller Controller) error
	// room returns why there can be no further object; nil when the tenant has
	// only this one.
	room func(ctx context.Context, tenant string) error
}

// stored is a tenant's object as the store has it.
type stored[T any] struct {
	value    T
	revision store.Revision
	exists   bool
	// damaged is why the value of one that exists cannot be read.
	damaged error
}

func (st stored[T]) tag() string { return etag(st.revision) }

// register has the object answered at a path that of finds for a request.
func register[T any](s *server, mux *http.ServeMux, path string, of func(*call) (*object[T], error)) {
	for method, route := range map[string]struct {
		needs  Right
		answer func(*object[T], *call) error
	}{
		http.MethodGet:    {Read, (*object[T]).answerGet},
		http.MethodPut:    {Write, (*object[T]).answerPut},
		http.MethodPatch:  {Write, (*object[T]).answerPatch},
		http.MethodDelete: {Write, (*object[T]).answerDelete},
	} {
		s.handle(mux, method+" "+path, route.needs, func(c *call) error {
			o, err := of(c)
			if err != nil {
				return err
			}
			return route.answer(o, c)
		})
	}
}

// only finds the one object of its kind that a tenant has.
func only[T any](o *object[T]) func(*call) (*object[T], error) {
	return func(*call) (*object[T], error) { return o, nil }
}

func (o *object[T]) stored(ctx context.Context, tenant string) (stored[T], error) {
	value, revision, err := o.read(ctx, tenant)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return stored[T]{}, nil
	case errors.Is(err, store.ErrDamaged):
		return stored[T]{revision: revision, exists: true, damaged: err}, nil
	}
	return stored[T]{value: value, revision: revision, exists: err == nil}, err
}

func (o *object[T]) missing(c *call) error {
	return problem(http.StatusNotFound, "", "", "tenant %q has no %s; create it with PUT", c.tenant, o.noun)
}

func (o *object[T]) mismatch(c *call, now stored[T]) error {
	if !now.exists {
		return problem(http.StatusPreconditionFailed, "", "", "tenant %q has no %s, so If-Match cannot hold", c.tenant, o.noun)
	}
	return problem(http.StatusPreconditionFailed, "", "", "the %s of tenant %q is there with ETag %s; read it again before you change it", o.noun, c.tenant, now.tag())
}

// unreadable is the error of who wants to know what is stored.
func (o *object[T]) unreadable(now stored[T]) error {
	return problem(http.StatusInternalServerError, "", "", "%v; write it anew with PUT, or delete it", now.damaged)
}

// answerGet answers GET (AV-6, AV-8, AV-9).
func (o *object[T]) answerGet(c *call) error {
	if err := query(c, "fields", "validate"); err != nil {
		return err
	}
	if _, err := flag(c, "validate"); err != nil {
		return err
	}
	now, err := o.stored(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	switch precondition(c.Method, c.Header, now.exists, now.tag()) {
	case http.StatusNotModified:
		c.w.Header().Set("ETag", now.tag())
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	case http.StatusPreconditionFailed:
		return o.mismatch(c, now)
	}
	switch {
	case !now.exists:
		return o.missing(c)
	case now.damaged != nil:
		return o.unreadable(now)
	}
	c.w.Header().Set("ETag", now.tag())
	return o.server.sendFields(c, now.value)
}

// answerPut answers PUT: 201 when new, 204 when replaced (AV-3).
func (o *object[T]) answerPut(c *call) error {
	return o.write(c, func(body []byte, _ stored[T]) (T, error) {
		return o.decode(c.Header.Get("Content-Type"), body)
	})
}

// answerPatch answers PATCH (AV-4). What the body alone has wrong is told even
// where there is nothing to change.
func (o *object[T]) answerPatch(c *call) error {
	return o.write(c, func(body []byte, now stored[T]) (T, error) {
		merged, err := o.patch(now.value, c.Header.Get("Content-Type"), body)
		switch {
		case err == nil && !now.exists:
			err = o.missing(c)
		case now.damaged != nil:
			err = o.unreadable(now)
		}
		return merged, err
	})
}

// write stores what next makes of the body and of what is there, in canonical
// spelling (AV-16), based on the revision that next saw (design.md 5,
// invariant 6).
func (o *object[T]) write(c *call, next func(body []byte, now stored[T]) (T, error)) error {
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
		now, err := o.stored(c.Context(), c.tenant)
		if err != nil {
			return err
		}
		value, err := next(body, now)
		if err != nil {
			return err
		}
		if precondition(c.Method, c.Header, now.exists, now.tag()) != 0 {
			return o.mismatch(c, now)
		}
		if !now.exists && o.room != nil {
			if err := o.room(c.Context(), c.tenant); err != nil {
				return err
			}
		}
		if validate {
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}
		revision, err := o.put(c.Context(), c.tenant, o.canonical(value), now.revision)
		if errors.Is(err, store.ErrConflict) && !conditional(c.Header) && try < maxTries {
			continue
		}
		if err != nil {
			return err
		}
		o.takeEffect(c, revision.Number)
		o.written(c, now.exists, revision)
		return nil
	}
}

// effectTimeout bounds the wait for a controller to see what was written.
const effectTimeout = 5 * time.Second

// takeEffect waits until the controller knows what was written, so that the
// client's next request finds it. It is stored in any case.
func (o *object[T]) takeEffect(c *call, number uint64) {
	ctx, cancel := context.WithTimeout(c.Context(), effectTimeout)
	defer cancel()
	if err := c.controller.Seen(ctx, number); err != nil {
		o.server.Log.Warn("the controller has not seen the new "+o.noun+" yet", "tenant", c.tenant, "error", err)
	}
}

func (o *object[T]) written(c *call, existed bool, revision store.Revision) {
	o.server.Log.Info(o.noun+" written", "tenant", c.tenant, "by", c.by, "revision", revision.String())
	c.w.Header().Set("ETag", etag(revision))
	if existed {
		c.w.WriteHeader(http.StatusNoContent)
		return
	}
	c.w.Header().Set("Location", c.URL.Path)
	c.w.WriteHeader(http.StatusCreated)
}

// answerDelete answers DELETE; of an object in use only with force (AV-5).
func (o *object[T]) answerDelete(c *call) error {
	known := []string{"validate"}
	if o.inUse != nil {
		known = append(known, "force")
	}
	if err := query(c, known...); err != nil {
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
	now, err := o.deletable(c, force)
	if err != nil {
		return err
	}
	if !validate {
		deletion, err := o.remove(c.Context(), c.tenant, now.revision)
		if err != nil {
			return err
		}
		o.takeEffect(c, deletion.Number)
		o.server.Log.Info(o.noun+" deleted", "tenant", c.tenant, "by", c.by)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// deletable returns what is there to delete.
func (o *object[T]) deletable(c *call, force bool) (stored[T], error) {
	now, err := o.stored(c.Context(), c.tenant)
	switch {
	case err != nil:
		return now, err
	case precondition(c.Method, c.Header, now.exists, now.tag()) != 0:
		return now, o.mismatch(c, now)
	case !now.exists:
		return now, o.missing(c)
	case o.inUse == nil || force:
		return now, nil
	}
	return now, o.inUse(c.Context(), c.controller)
}
