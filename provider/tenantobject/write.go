package tenantobject

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
)

// tries is how often a write starts over because somebody else changed a part
// that this resource does not own.
const tries = 5

// write is one change of a tenant's object.
type write[T any] struct {
	kind  Kind[T]
	store store[T]
	at    Key
	// prior and want are what the resource owned and what it shall own.
	prior, want T
	// snapshot is the object as it was read last; one without an ETag is read again.
	base found[T]
	// begin is set for a creation: the resource owned nothing before.
	begin bool
	// overwrite permits overwriting parts that the resource did not own.
	overwrite bool
	// remove deletes the object if it is empty after the write.
	remove bool
}

// found is the object on the server.
type found[T any] struct {
	client.Stored[T]
	exists bool
}

// busyError means that others changed the object during each try.
type busyError struct{ noun string }

func (e *busyError) Error() string {
	return fmt.Sprintf("somebody else changed the %s during each of %d tries", e.noun, tries)
}

// do writes and returns the object as it is then. If a run blocks the write, it waits
// for the end of the run.
func (w write[T]) do(ctx context.Context) (found[T], error) {
	server, known := w.base, w.base.ETag != ""
	for try := 0; try < tries; try++ {
		if !known {
			var err error
			if server, err = w.read(ctx); err != nil {
				return found[T]{}, err
			}
		}
		// What is known is what the plan was made from, and that found something to write.
		if done, err := w.decide(server); done && !known || err != nil {
			return server, err
		}
		written, err := w.send(ctx, server)
		if !client.HasStatus(err, http.StatusPreconditionFailed) {
			return written, err
		}
		known = false
		if id := BlockingRun(err); id != 0 {
			try--
			if err := w.store.AwaitRun(ctx, id); err != nil {
				return found[T]{}, err
			}
			continue
		}
		if err := pause(ctx, try); err != nil {
			return found[T]{}, err
		}
	}
	return found[T]{}, &busyError{w.kind.Noun}
}

// read gets the object; 404 means that it does not exist. If the tenant does not
// exist, the write will fail with that error.
func (w write[T]) read(ctx context.Context) (found[T], error) {
	stored, err := w.store.Get(ctx)
	if client.HasStatus(err, http.StatusNotFound) {
		return found[T]{}, nil
	}
	return found[T]{stored, err == nil}, err
}

// decide reports whether there is nothing to write. It returns an error if a
// write would overwrite somebody else's change.
func (w write[T]) decide(server found[T]) (done bool, err error) {
	if w.remove && !server.exists {
		return true, nil
	}
	if found := w.conflicts(server); len(found) > 0 {
		return false, &conflictError{found}
	}
	if w.removes(server) {
		return false, nil
	}
	return server.exists && w.kind.InSync(w.want, server.Value), nil
}

// conflicts lists what a write would overwrite. A creation also refuses what is there
// with the wanted content: two resources that manage the same, with identical blocks
// or through two aliases of the provider, are found out by nothing else.
func (w write[T]) conflicts(server found[T]) []Conflict {
	all := w.kind.Conflicts(w.prior, server.Value, w.want)
	if w.begin {
		for _, there := range w.kind.Conflicts(w.prior, server.Value, w.kind.Emptied(w.want)) {
			if !slices.ContainsFunc(all, func(c Conflict) bool { return c.root() == there.root() }) {
				there.Want = there.Server
				all = append(all, there)
			}
		}
	}
	var result []Conflict
	for _, c := range all {
		c.Unowned = c.Unowned || w.begin
		if !c.Unowned || !w.overwrite {
			result = append(result, c)
		}
	}
	return result
}

// send writes the complete object, because PATCH cannot delete entries, with the
// members of the object read that the provider does not know. The precondition is the
// ETag of the object read. A server that answers without an ETag is asked for the object.
func (w write[T]) send(ctx context.Context, server found[T]) (found[T], error) {
	when := client.Precondition{IfMatch: server.ETag}
	if !server.exists {
		when = client.Precondition{IfNoneMatch: "*"}
	}
	if w.removes(server) {
		return found[T]{}, w.store.Delete(ctx, when)
	}
	written, err := w.store.Put(ctx, server.Stored, w.kind.Merged(w.want, server.Value), when)
	return found[T]{written, err == nil}, err
}

// removes reports whether the write deletes the object: nothing would be left in it.
func (w write[T]) removes(server found[T]) bool {
	return w.remove && w.kind.Empty(w.kind.Merged(w.want, server.Value)) && (!w.kind.Shared || !server.HasUnknown())
}

// pause waits for other writers, longer with each try.
func pause(ctx context.Context, try int) error {
	longest := 100 * time.Millisecond << try
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(longest)):
		return nil
	}
}

// removed reports whether a failed read proves that the object has been removed,
// and not that endpoint, tenant or token are wrong (terraform.md 5 row 8). The agent
// names the missing object in error-info. A 404 without that, of another server, proves
// it only if the tenant's state can be read.
func removed[T any](ctx context.Context, at store[T], err error) bool {
	var answer *client.Error
	if !client.Missing(err) || !errors.As(err, &answer) {
		return false
	}
	if answer.Errors[0].Info.Missing != "" {
		return true
	}
	return at.TenantExists(ctx)
}

// Conflict is an attribute that somebody else has changed: the server's value is
// neither the prior nor the wanted value.
type Conflict struct {
	// At is the attribute.
	At path.Path
	// Unowned reports that the resource did not own the attribute before.
	Unowned bool
	// Was, Server and Want are the three values, entry by entry.
	Was, Server, Want []string
}

// root is the attribute of the resource that the conflict is in.
func (c Conflict) root() string { return c.At.Steps()[0].String() }

// conflictError means that a write would overwrite somebody else's change.
type conflictError struct{ conflicts []Conflict }

func (e *conflictError) Error() string {
	return fmt.Sprintf("somebody else changed %s", e.conflicts[0].At)
}

// report adds the errors of a failed operation.
func (k Kind[T]) report(diags *diag.Diagnostics, operation string, at Key, err error) {
	var foreign *conflictError
	var busy *busyError
	switch {
	case errors.As(err, &busy):
		diags.AddError(operation, "Tenant: "+at.Tenant+"\nCause: "+err.Error()+"\n\nNothing was written. Find out who changes it so often, and apply again.")
		return
	case !errors.As(err, &foreign):
		diagnostics.Failure{Operation: operation, Tenant: at.Tenant, Err: err, NotFound: k.NotFound}.Add(diags, k.Locate)
		return
	}
	for _, c := range foreign.conflicts {
		diags.AddAttributeError(c.At, operation, k.explain(at, c))
	}
}

// explain describes the difference and what to do.
func (k Kind[T]) explain(at Key, c Conflict) string {
	if c.Unowned {
		return fmt.Sprintf("%s has %s already, which this resource did not manage. Nothing was written.\n\n%s\n\n%s\n\n"+
			"If another resource of this configuration manages it, such as one with an identical block or with another alias of the provider, remove one of the two.",
			sentence(k.owner(at)), c.At, comparison([2]string{"on the server", "in the configuration"}, c.Server, c.Want), k.takeOver(at))
	}
	return fmt.Sprintf("Somebody else changed %s of %s after this plan was made. Nothing was written.\n\n%s\n\n"+
		"Run plan again to see the change, then decide.",
		c.At, k.owner(at), comparison([2]string{"when planned", "on the server now"}, c.Was, c.Server))
}

// owner names the object for an error.
func (k Kind[T]) owner(at Key) string {
	if at.Name == "" {
		return "tenant " + at.Tenant
	}
	return k.Noun + " " + at.Name + " of tenant " + at.Tenant
}

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func (k Kind[T]) takeOver(at Key) string {
	return fmt.Sprintf("To manage what is there, import it:\n\n  import {\n    to = %s.example\n    id = %q\n  }\n\n"+
		"To overwrite it, set overwrite_existing = true.", k.TypeName, at.ID())
}

// comparison lists both sides of a difference.
func comparison(titles [2]string, left, right []string) string {
	return side(titles[0], left) + "\n" + side(titles[1], right)
}

func side(title string, entries []string) string {
	if len(entries) == 0 {
		return "  " + title + ": none"
	}
	return "  " + title + ":\n    - " + strings.Join(entries, "\n    - ")
}
