package tenantobject

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
)

// tries is how often a write starts over because somebody else wrote.
const tries = 10

// found is the object on the server.
type found[T any] struct {
	client.Stored[T]
	exists bool
}

// update is what a write does with the object: it replaces it by value, or removes it. done
// is set if the object is as it should be.
type update[T any] struct {
	value        T
	remove, done bool
}

// busyError means that others changed the object during each try.
type busyError struct{}

func (*busyError) Error() string {
	return fmt.Sprintf("somebody else changed it during each of %d tries", tries)
}

// change writes what edit makes of the object, and returns the object as it is then. server
// is the object as it is known; without known it is read. edit is called again when somebody
// else has written, with asked set if the object was read for it, and sent if a write of this
// call may have been done, because its answer was lost.
//
// A write that was sent is not interrupted: if its answer is lost, the object is read, until
// the deadline of ctx, to see what became of it. A server that is silent is waited for, and
// the end of a run that blocks the write.
func change[T any](ctx context.Context, at store[T], quiet *silence, server found[T], known bool, edit func(server found[T], asked, sent bool) (update[T], error)) (found[T], error) {
	lasting, cancel := uninterrupted(ctx)
	defer cancel()
	var lost error  // Why it is not known what became of the last write.
	var inUse error // Why the object of the revision refusedAt is not removed.
	refusedAt, sent := "", false
	for try := 0; try < tries; {
		looking := ctx
		if lost != nil {
			looking = lasting
		}
		if !known {
			var err error
			if server, err = look(looking, at, quiet); err != nil {
				return found[T]{}, unsure(lost, err)
			}
		}
		next, err := edit(server, !known, sent)
		switch {
		case err != nil || next.done:
			return server, err
		case lost != nil && !silent(lost):
			return found[T]{}, lost // The server failed, and has not done it.
		case next.remove && inUse != nil && server.ETag == refusedAt:
			return found[T]{}, inUse // Nobody has changed it: it is refused for what it is.
		}
		if err := quiet.wait(ctx); err != nil {
			return found[T]{}, err
		}
		written, err := send(lasting, at, server, next)
		known, lost = false, nil
		switch id := BlockingRun(err); {
		case err == nil:
			return written, nil
		case client.Unsent(err):
			err = nil // The read waits for the server.
		case mayHaveDone(err):
			sent, lost, err = true, err, pause(lasting, 0)
		case id != 0:
			err = quiet.outlast(ctx, func(ctx context.Context) error { return at.AwaitRun(ctx, id) })
		case client.HasStatus(err, http.StatusPreconditionFailed) && !client.Frozen(err):
			inUse, refusedAt = err, server.ETag
			if err = nil; server.exists {
				err = pause(ctx, try)
			}
			try++
		}
		if err != nil {
			return found[T]{}, unsure(lost, err)
		}
	}
	return found[T]{}, &busyError{}
}

// uninterrupted returns a context that ends at the deadline of ctx, and not before.
func uninterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting := context.WithoutCancel(ctx)
	if deadline, bounded := ctx.Deadline(); bounded {
		return context.WithDeadline(lasting, deadline)
	}
	return lasting, func() {}
}

// mayHaveDone reports whether a write that failed may have been done all the same.
func mayHaveDone(err error) bool {
	var answer *client.Error
	if errors.As(err, &answer) {
		return answer.Status >= http.StatusInternalServerError && answer.Status != http.StatusServiceUnavailable && answer.Status != http.StatusNotImplemented
	}
	return silent(err)
}

// unsure adds to an error that it is not known what became of a write; lost is nil if none
// was sent.
func unsure(lost, err error) error {
	if lost == nil {
		return err
	}
	return fmt.Errorf("it is not known whether the change was made; the next plan shows it: %w", err)
}

// look gets the object; 404 means that it does not exist. If the tenant does not
// exist, the write will fail with that error.
func look[T any](ctx context.Context, at store[T], quiet *silence) (found[T], error) {
	var stored client.Stored[T]
	err := quiet.outlast(ctx, func(ctx context.Context) (err error) {
		stored, err = at.Get(ctx)
		return err
	})
	if client.HasStatus(err, http.StatusNotFound) {
		return found[T]{}, nil
	}
	return found[T]{stored, err == nil}, err
}

// send writes the complete object, because PATCH cannot delete entries, with the
// members of the object read that the provider does not know. The precondition is the
// ETag of the object read.
func send[T any](ctx context.Context, at store[T], server found[T], next update[T]) (found[T], error) {
	ctx = client.Patient(ctx)
	when := client.Precondition{IfMatch: server.ETag}
	if !server.exists {
		when = client.Precondition{IfNoneMatch: "*"}
	}
	if next.remove {
		return found[T]{}, at.Delete(ctx, when)
	}
	written, err := at.Put(ctx, server.Stored, next.value, when)
	return found[T]{written, err == nil}, err
}

// pause waits for other writers, longer with each try.
func pause(ctx context.Context, try int) error {
	return sleep(ctx, rand.N(100*time.Millisecond<<min(try, 4)))
}

// write is one change of a tenant's object by the resource that owns a part of it.
type write[T any] struct {
	kind  Kind[T]
	store store[T]
	quiet *silence
	at    Key
	// prior and want are what the resource owned and what it shall own.
	prior, want T
	// base is the object as it was read last; one without an ETag is read again.
	base found[T]
	// begin is set for a creation: the resource owned nothing before. absent is set if the
	// plan has asked the server, which knows no such object; if it knows one, the plan has said
	// so, and the write is refused and starts over.
	begin, absent bool
	// overwrite permits overwriting parts that the resource did not own.
	overwrite bool
	// renews is set if the store sends a secret. Whether the server has it, nobody can see, so it
	// is sent even if the object is as it should be.
	renews bool
	// ours is set if an object that a creation meets may be that of this resource: one that it
	// replaces, or that of a write whose answer was lost.
	ours bool
	// remove deletes the object if it is empty after the write.
	remove bool
}

// do writes and returns the object as it is then.
func (w write[T]) do(ctx context.Context) (found[T], error) {
	return change(ctx, w.store, w.quiet, w.base, w.base.ETag != "" || w.absent, func(server found[T], asked, sent bool) (update[T], error) {
		w.ours = sent
		done, err := w.decide(server)
		// What is known is what the plan was made from, and that found something to write.
		return update[T]{w.kind.Parts.Merged(w.want, server.Value), w.removes(server), done && asked && !w.renews}, err
	})
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
	return server.exists && w.kind.Parts.InSync(w.want, server.Value), nil
}

// conflicts lists what a write would overwrite.
func (w write[T]) conflicts(server found[T]) []Conflict {
	var result []Conflict
	for _, c := range w.kind.Parts.Conflicts(w.prior, server.Value, w.want) {
		c.Unowned = c.Unowned || w.begin
		if !c.Unowned || !w.overwrite {
			result = append(result, c)
		}
	}
	if w.begin && w.renews && server.exists && !w.overwrite && !w.ours {
		result = append(result, Conflict{At: path.Root(w.kind.Secret.Attribute), Unowned: true})
	}
	return result
}

// adopts lists what the server has already of what a creation wants.
func (w write[T]) adopts(server found[T]) []Conflict {
	if !w.begin || w.overwrite || !server.exists || !w.kind.Parts.InSync(w.want, server.Value) {
		return nil
	}
	return w.kind.Parts.Conflicts(w.prior, server.Value, w.kind.Parts.Emptied(w.want))
}

// removes reports whether the write deletes the object: nothing would be left in it.
func (w write[T]) removes(server found[T]) bool {
	return w.remove && w.kind.Parts.Empty(w.kind.Parts.Merged(w.want, server.Value)) && (len(w.kind.Parts) == 1 || !server.HasUnknown())
}

// removed reports whether a failed read proves that the object has been removed,
// and not that endpoint, tenant or token are wrong. The agent
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
		diagnostics.Failure{Operation: operation, Tenant: at.Tenant, Err: err, NotFound: k.NotFound, Refused: k.Refused}.Add(diags, k.Locate)
		return
	}
	for _, c := range foreign.conflicts {
		diags.AddAttributeError(c.At, operation, k.explain(at, c))
	}
}

// explain describes the difference and what to do.
func (k Kind[T]) explain(at Key, c Conflict) string {
	switch {
	case k.Secret != nil && c.At.Equal(path.Root(k.Secret.Attribute)):
		return fmt.Sprintf("%s exists already, and its secret would be replaced by %s. Nothing was written.\n\n%s\n\n"+
			"After the import, an update sends %[2]s; to keep the secret that is there, leave out %[2]s and %[2]s_version. "+
			"If an apply that was interrupted created the %[4]s, set overwrite_existing = true.\n\n%[5]s",
			sentence(k.owner(at)), c.At, k.takeOver(at), k.Noun, AlsoManaged)
	case c.Unowned:
		return fmt.Sprintf("%s has %s already, which this resource did not manage. Nothing was written.\n\n%s\n\n%s\n\n%s",
			sentence(k.owner(at)), c.At, comparison([2]string{"on the server", "in the configuration"}, c.Server, c.Want), k.takeOver(at), AlsoManaged)
	}
	return fmt.Sprintf("Somebody else changed %s of %s after this plan was made, or before it if it was made with -refresh=false. Nothing was written.\n\n%s\n\n"+
		"Run plan again, with a refresh, to see the change, then decide.",
		c.At, k.owner(at), comparison([2]string{"when planned", "on the server now"}, c.Was, c.Server))
}

// warnOfAdoption adds a warning for each attribute whose content a creation finds.
func (k Kind[T]) warnOfAdoption(diags *diag.Diagnostics, w write[T], server found[T]) {
	for _, there := range w.adopts(server) {
		diags.AddAttributeWarning(there.At, "What exists is managed from now on", fmt.Sprintf(
			"%s has %s already, as this resource declares it. An apply whose answer was lost leaves it so.\n\n%s\n\n%s",
			sentence(k.owner(w.at)), there.At, side("on the server", there.Server), AlsoManaged))
	}
}

// AlsoManaged says what to do if two resources manage the same.
const AlsoManaged = "If another resource manages it, such as one with an identical block or with another alias of the provider, remove one of the two: " +
	"each would undo the changes of the other."

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
		"To overwrite it, as a replacement under the same name with create_before_destroy does, set overwrite_existing = true.", k.TypeName, at.ID())
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
