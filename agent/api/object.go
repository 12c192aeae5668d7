package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// maxTries is how often a write without a precondition is retried after a
// concurrent write.
const maxTries = 5

// object handles the requests for an object of a tenant.
type object[T any] struct {
	server *server
	// noun names the object for people.
	noun string

	read func(ctx context.Context, tenant string) (v1.Kept[T], store.Revision, error)
	put  func(ctx context.Context, tenant string, value v1.Kept[T], base store.Revision) (store.Revision, error)
	// remove returns the revision of the deletion.
	remove func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error)

	form v1.Form[T]
	// recorded returns what of a value an audit record shows, without any secret; nil means
	// that it shows nothing.
	recorded func(T) T
	// inUse returns why the object cannot be deleted without force. A nil inUse
	// means that it always can.
	inUse func(ctx context.Context, controller Controller) error
	// ofSite tells that it belongs to the site, and to no tenant.
	ofSite bool
	// permitted returns why a value may not be written; nil means that any may. If that, or whether the
	// object can be deleted, depends on other objects, lock is held from then until the value is stored
	// or the object deleted.
	permitted func(now stored[T], next T) error
	lock      sync.Locker
	// stamped returns a value with what the site itself writes of it; nil if it writes nothing.
	stamped func(now stored[T], next T) T
	// freezing is how runs that freeze changes freeze the object; nil if none does.
	freezing *freezing[T]
	// immediate tells that a write is in effect at once: no controller has to see it.
	immediate bool
	// refers returns what of a value refers to hosts; nil means that nothing does.
	refers func(T) plan.Intent
	// orphans warns of what refers to an object that is deleted; nil means that nothing does.
	orphans func(c *call) ([]v1.IntentWarning, error)
	// room returns why no further object can be created. It is nil for an object
	// of which a tenant has one.
	room func(ctx context.Context, tenant string) error
}

// stored is a tenant's object in the store.
type stored[T any] struct {
	value    v1.Kept[T]
	revision store.Revision
	exists   bool
	// damaged is why the value of an existing object cannot be read.
	damaged error
}

func (st stored[T]) tag() string { return st.revision.ETag() }

// only returns the object of a kind of which a tenant has one.
func only[T any](of func(*server) *object[T]) func(*server, *call) (*object[T], error) {
	return func(s *server, _ *call) (*object[T], error) { return of(s), nil }
}

// answering returns the handler of a method of an object; of returns the object of a
// request.
func answering[T any](of func(*server, *call) (*object[T], error), answer func(*object[T], *call) error) func(*server, *call) error {
	return func(s *server, c *call) error {
		o, err := of(s, c)
		if err != nil {
			return err
		}
		return answer(o, c)
	}
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

// missing refuses a request for an object that does not exist. Whoever deletes
// one by a wrong name does not want to create it.
func (o *object[T]) missing(c *call) error {
	text := fmt.Sprintf("tenant %q has no %s", c.tenant, o.noun)
	if o.ofSite {
		text = "there is no " + o.noun
	}
	if c.Method != http.MethodDelete || o.room == nil {
		text += "; create it with PUT"
	}
	return missing(o.noun, "%s", text)
}

func (o *object[T]) mismatch(c *call, now stored[T]) error {
	switch {
	case o.ofSite && !now.exists:
		return problem(http.StatusPreconditionFailed, "", "", "there is no %s, so If-Match cannot match", o.noun)
	case o.ofSite:
		return problem(http.StatusPreconditionFailed, "", "", "the %s has ETag %s; read it again before you change it", o.noun, now.tag())
	}
	if !now.exists {
		return problem(http.StatusPreconditionFailed, "", "", "tenant %q has no %s, so If-Match cannot match", c.tenant, o.noun)
	}
	return problem(http.StatusPreconditionFailed, "", "", "the %s of tenant %q has ETag %s; read it again before you change it", o.noun, c.tenant, now.tag())
}

// unreadable is the error of a request that needs the damaged value.
func (o *object[T]) unreadable(now stored[T]) error {
	return problem(http.StatusInternalServerError, "", "", "%v; replace it with PUT, or delete it", now.damaged)
}

// answerGet handles GET: 304 if the client has the object already, and on request only
// some fields of it.
func (o *object[T]) answerGet(c *call) error {
	now, err := o.stored(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	tag := now.tag()
	switch precondition(c.Method, c.Header, now.exists, tag) {
	case http.StatusNotModified:
		c.w.Header().Set("ETag", tag)
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
	c.w.Header().Set("ETag", tag)
	return o.server.sendFieldsOf(c, reflect.TypeFor[T](), now.value)
}

// answerPut handles PUT: 201 if the object is new, 204 if replaced.
func (o *object[T]) answerPut(c *call) error {
	return o.write(c, func(body []byte, now stored[T]) (v1.Kept[T], error) {
		return o.form.Decode(now.value, c.Header.Get("Content-Type"), body, c.has(unknownMembers))
	})
}

// answerPatch handles PATCH. Errors of the body are reported even if there is no object.
func (o *object[T]) answerPatch(c *call) error {
	return o.write(c, func(body []byte, now stored[T]) (v1.Kept[T], error) {
		merged, err := o.patched(c, now.value, body)
		unfit, isAnswer := errors.AsType[*answer](err)
		switch {
		case !now.exists && (err == nil || isAnswer && unfit.status == http.StatusConflict):
			err = o.missing(c)
		case now.damaged != nil:
			err = o.unreadable(now)
		}
		return merged, err
	})
}

// patched returns an object with the changes of a body. Under the content type of either
// patch a list is one of operations (RFC 6902) and anything else is merged (RFC 7396): none
// can be taken for the other, and Avassa's Python client sends both as a JSON Patch.
func (o *object[T]) patched(c *call, now v1.Kept[T], body []byte) (v1.Kept[T], error) {
	contentType, keep := c.Header.Get("Content-Type"), c.has(unknownMembers)
	media, _, _ := mime.ParseMediaType(contentType) // Merge says what is wrong with it.
	if media == v1.JSONPatch || media == document.MergePatch {
		if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
			return o.changed(c, now, body, keep)
		}
		contentType = document.MergePatch
	}
	return o.form.Merge(now, contentType, body, keep)
}

// write stores the result of next in canonical form. The write names the revision that
// next got, and fails if somebody else has written since.
func (o *object[T]) write(c *call, next func(body []byte, now stored[T]) (v1.Kept[T], error)) error {
	body, err := c.body()
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
		o.stamp(now, &value)
		if !now.exists && o.room != nil {
			if err := o.room(c.Context(), c.tenant); err != nil {
				return err
			}
		}
		revision, err := o.store(c, now, value)
		if errors.Is(err, store.ErrConflict) && !conditional(c.Header) && try < maxTries {
			continue
		}
		if err != nil {
			return err
		}
		if c.has("validate") {
			o.warn(c, value.Value)
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}
		o.audit(c, now, revision, &value)
		o.takeEffect(c, revision.Number)
		o.warn(c, value.Value)
		o.written(c, c.URL.Path, now.exists, revision)
		return nil
	}
}

// stamp adds to a value what the site itself writes of it.
func (o *object[T]) stamp(now stored[T], value *v1.Kept[T]) {
	if o.stamped != nil {
		value.Value = o.stamped(now, value.Value)
	}
}

// store stores a value if it is permitted. A request that only validates stores nothing.
func (o *object[T]) store(c *call, now stored[T], value v1.Kept[T]) (store.Revision, error) {
	if o.lock != nil {
		o.lock.Lock()
		defer o.lock.Unlock()
	}
	if o.permitted != nil {
		if err := o.permitted(now, value.Value); err != nil {
			return store.Revision{}, err
		}
	}
	if c.has("validate") {
		return store.Revision{}, nil
	}
	if err := o.frozen(c, now, &value.Value); err != nil {
		return store.Revision{}, err
	}
	return o.put(c.Context(), c.tenant, value, now.revision)
}

// audit notes a write for its audit record. Members that are kept for newer clients are in
// the difference, too: who reads the object reads them.
func (o *object[T]) audit(c *call, before stored[T], after store.Revision, value *v1.Kept[T]) {
	if o.server.Audit == nil {
		return
	}
	var old *v1.Kept[T]
	c.audit.Before, c.audit.After = recordedRevision(before.revision), recordedRevision(after)
	if before.exists && before.damaged == nil {
		old = &before.value
	}
	if o.recorded != nil {
		c.audit.Diff = intent.Diff(old, value, func(k v1.Kept[T]) v1.Kept[T] {
			k.Value = o.recorded(k.Value)
			return k
		})
	}
}

// recordedRevision is a revision as an audit record has it; empty for none.
func recordedRevision(r store.Revision) string {
	if r == (store.Revision{}) {
		return ""
	}
	return r.String()
}

// effectTimeout bounds the wait for a controller to see what was written.
const effectTimeout = 5 * time.Second

// takeEffect waits until the controller has seen the write, so that the client's
// next request finds it in effect. The write is stored in any case.
func (o *object[T]) takeEffect(c *call, number uint64) {
	if o.immediate {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), effectTimeout)
	defer cancel()
	if err := c.controller.Seen(ctx, number); err != nil {
		o.server.Log.Warn("the controller has not seen the new "+o.noun+" yet", "tenant", c.tenant, "error", err)
	}
}

// warnTimeout bounds the wait for warnings: a write is answered without them, too.
const warnTimeout = time.Second

// warn adds to the answer what of a valid value matches no known host.
func (o *object[T]) warn(c *call, value T) {
	if o.refers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), warnTimeout)
	defer cancel()
	found, err := c.controller.Unmatched(ctx, o.refers(value))
	if err != nil {
		o.server.Log.Warn("it is not known what of the "+o.noun+" matches no host", "tenant", c.tenant, "error", err)
	}
	addWarnings(c, found)
}

// addWarnings adds warnings to an answer.
func addWarnings(c *call, found []v1.IntentWarning) {
	for _, w := range found {
		c.w.Header().Add(v1.WarningHeader, w.Header())
	}
}

// create stores an object that must not be there yet.
func (o *object[T]) create(c *call, path string, value v1.Kept[T]) error {
	now, err := o.stored(c.Context(), c.tenant)
	if err == nil && now.exists {
		return o.exists(c, path)
	}
	if err == nil && o.room != nil {
		err = o.room(c.Context(), c.tenant)
	}
	if err != nil {
		return err
	}
	o.stamp(now, &value)
	revision, err := o.store(c, now, value)
	if errors.Is(err, store.ErrConflict) {
		return o.exists(c, path)
	} else if err != nil {
		return err
	}
	if c.has("validate") {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	o.audit(c, now, revision, &value)
	o.takeEffect(c, revision.Number)
	o.written(c, path, false, revision)
	return nil
}

func (o *object[T]) exists(c *call, path string) error {
	if o.ofSite {
		return problem(http.StatusConflict, "name", "", "there is the %s already; replace it with PUT %s", o.noun, path)
	}
	return problem(http.StatusConflict, "name", "", "tenant %q has the %s already; replace it with PUT %s", c.tenant, o.noun, path)
}

// written answers a write of the object at a path.
func (o *object[T]) written(c *call, path string, existed bool, revision store.Revision) {
	o.server.Log.Info(o.noun+" written", "tenant", c.tenant, "by", c.who.Name, "revision", revision.String())
	c.w.Header().Set("ETag", revision.ETag())
	if existed {
		c.w.WriteHeader(http.StatusNoContent)
		return
	}
	c.w.Header().Set("Location", path)
	c.w.WriteHeader(http.StatusCreated)
}

// answerDelete handles DELETE; an object in use needs force.
func (o *object[T]) answerDelete(c *call) error {
	now, deletion, err := o.delete(c)
	if err != nil {
		return err
	}
	if !c.has("validate") {
		o.audit(c, now, deletion, nil)
		o.takeEffect(c, deletion.Number)
		o.server.Log.Info(o.noun+" deleted", "tenant", c.tenant, "by", c.who.Name)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// delete deletes the object if it can be, and returns it and the revision of the deletion. A request
// that only validates deletes nothing.
func (o *object[T]) delete(c *call) (now stored[T], deletion store.Revision, err error) {
	if o.lock != nil {
		o.lock.Lock()
		defer o.lock.Unlock()
	}
	if now, err = o.deletable(c, c.has("force")); err != nil {
		return now, deletion, err
	}
	if o.orphans != nil {
		found, err := o.orphans(c)
		if err != nil {
			return now, deletion, err
		}
		addWarnings(c, found)
	}
	if c.has("validate") {
		return now, deletion, nil
	}
	if err := o.frozen(c, now, nil); err != nil {
		return now, deletion, err
	}
	deletion, err = o.remove(c.Context(), c.tenant, now.revision)
	return now, deletion, err
}

// deletable returns the object, or why it cannot be deleted.
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

// precondition evaluates If-Match and If-None-Match (RFC 9110 13.2.2). It returns
// 0 if the request proceeds, else 304 or 412.
func precondition(method string, header http.Header, exists bool, tag string) int {
	if match := header.Values("If-Match"); len(match) > 0 && !lists(match, exists, tag) {
		return http.StatusPreconditionFailed
	}
	if none := header.Values("If-None-Match"); len(none) > 0 && lists(none, exists, tag) {
		if method == http.MethodGet || method == http.MethodHead {
			return http.StatusNotModified
		}
		return http.StatusPreconditionFailed
	}
	return 0
}

// conditional reports whether a request has a precondition.
func conditional(header http.Header) bool {
	return len(header.Values("If-Match")) > 0 || len(header.Values("If-None-Match")) > 0
}

// lists reports whether a list of entity tags matches the object. A weak tag never
// matches, because ours are strong.
func lists(values []string, exists bool, tag string) bool {
	for _, value := range values {
		for _, part := range strings.Split(value, ",") {
			switch strings.TrimSpace(part) {
			case "*":
				return exists
			case tag:
				return exists
			}
		}
	}
	return false
}
