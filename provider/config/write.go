package config

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/wait"
)

// tries is how often a write begins anew since somebody else wrote in between
// what this resource does not own.
const tries = 5

// write is one change of a tenant's configuration.
type write struct {
	api    *client.Client
	tenant string
	// prior and want are what the resource owned and what it shall own; see
	// merge.go.
	prior, want v1.OSUpgrade
	// etag is the one that prior came with; empty when it is not known.
	etag string
	// overwrite allows to overwrite lists that were not owned before.
	overwrite bool
	// remove deletes the object when nothing is left in it.
	remove bool
}

// found is the object on the server.
type found struct {
	config v1.OSUpgrade
	etag   string
	exists bool
}

// conflictError is the answer to a write that would overwrite what somebody
// else wrote.
type conflictError struct{ conflicts []conflict }

func (e *conflictError) Error() string {
	return fmt.Sprintf("somebody else changed %s", e.conflicts[0].list)
}

// errBusy tells that others kept writing what this resource does not own.
var errBusy = fmt.Errorf("somebody else changed the configuration during each of %d tries", tries)

// do writes and returns the new ETag. A run that stands in the way is waited
// for.
func (w write) do(ctx context.Context) (etag string, err error) {
	server, read := found{}, w.etag == "" || !ownsAll(w.want) || !ownsAll(w.prior)
	for try := 0; try < tries; try++ {
		if read {
			if server, err = w.read(ctx); err != nil {
				return "", err
			}
			if done, err := w.decide(server); done || err != nil {
				return server.etag, err
			}
		}
		etag, err = w.send(ctx, server, read)
		if !client.HasStatus(err, http.StatusPreconditionFailed) {
			return etag, err
		}
		if id := wait.InTheWay(err); id != 0 {
			try--
			if err := wait.UntilFree(ctx, w.api, w.tenant, id); err != nil {
				return "", err
			}
			continue
		}
		read = true
		if err := pause(ctx, try); err != nil {
			return "", err
		}
	}
	return "", errBusy
}

// read gets the object. A 404 is one that does not exist: when it is the
// tenant that does not, the write will say so.
func (w write) read(ctx context.Context) (found, error) {
	config, etag, err := w.api.Config(ctx, w.tenant)
	if client.HasStatus(err, http.StatusNotFound) {
		return found{}, nil
	}
	return found{config, etag, err == nil}, err
}

// decide reports whether nothing is left to do, or why nothing may be done.
func (w write) decide(server found) (done bool, err error) {
	if w.remove && !server.exists {
		return true, nil
	}
	if found := w.relevant(conflicts(w.prior, server.config, w.want)); len(found) > 0 {
		return false, &conflictError{found}
	}
	if w.remove && empty(merged(w.want, server.config)) {
		return false, nil
	}
	return server.exists && settled(w.want, server.config), nil
}

func (w write) relevant(all []conflict) []conflict {
	var result []conflict
	for _, c := range all {
		if !c.taken || !w.overwrite {
			result = append(result, c)
		}
	}
	return result
}

// send writes the whole object, since PATCH cannot delete entries. The write
// is bound to what was read, or else to the ETag that is known.
func (w write) send(ctx context.Context, server found, read bool) (etag string, err error) {
	when := client.Precondition{IfMatch: w.etag}
	if read {
		when = client.Precondition{IfMatch: server.etag}
		if !server.exists {
			when = client.Precondition{IfNoneMatch: "*"}
		}
	}
	body := merged(w.want, server.config)
	if w.remove && empty(body) {
		return "", w.api.DeleteConfig(ctx, w.tenant, when)
	}
	return w.api.PutConfig(ctx, w.tenant, body, when)
}

// pause lets other writers finish, longer with each try.
func pause(ctx context.Context, try int) error {
	longest := 100 * time.Millisecond << try
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(longest)):
		return nil
	}
}
