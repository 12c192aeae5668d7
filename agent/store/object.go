package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
)

// key says which object: the tenant's or, of a kind of which a tenant has
// several, the one of a name. Neither has a dot in it.
type key struct{ tenant, name string }

func keyOf(entry string) key {
	tenant, name, _ := strings.Cut(entry, ".")
	return key{tenant, name}
}

// entry is the key of the bucket.
func (k key) entry() string {
	if k.name == "" {
		return k.tenant
	}
	return k.tenant + "." + k.name
}

// object is a kind of object in a bucket of its own, of which each tenant has
// one or several.
type object[T any] struct {
	js jetstream.JetStream
	kv jetstream.KeyValue
	// made is when the bucket was made.
	made int64
	// noun is what people call it.
	noun string
}

// openObject opens the bucket of a kind of object, which keeps so many
// revisions of each.
func openObject[T any](ctx context.Context, js jetstream.JetStream, name, noun string, keep uint8) (*object[T], error) {
	kv, err := bucket(ctx, js, name, noun+" by tenant", keep)
	if err != nil {
		return nil, err
	}
	made, err := creation(ctx, js, "KV_"+name)
	if err != nil {
		return nil, err
	}
	return &object[T]{js: js, kv: kv, made: made.UnixNano(), noun: noun}, nil
}

// which names an object for people.
func (o *object[T]) which(k key) string {
	if k.name == "" {
		return o.noun + " of tenant " + k.tenant
	}
	return o.noun + " " + k.name + " of tenant " + k.tenant
}

func (o *object[T]) get(ctx context.Context, k key) (T, Revision, error) {
	entry, err := o.kv.Get(ctx, k.entry())
	if err != nil {
		var none T
		return none, Revision{}, fmt.Errorf("cannot read the %s: %w", o.which(k), translate(err))
	}
	value, err := o.decode(entry)
	return value, o.revision(entry.Revision()), err
}

func (o *object[T]) decode(entry jetstream.KeyValueEntry) (T, error) {
	var value, none T
	switch err := format.Config.Decode(entry.Value(), &value); {
	case format.IsUnsupported(err):
		return none, fmt.Errorf("the stored %s was %w", o.which(keyOf(entry.Key())), err)
	case err != nil:
		return none, fmt.Errorf("the stored %s %w: %w", o.which(keyOf(entry.Key())), ErrDamaged, err)
	}
	return value, nil
}

func (o *object[T]) revision(number uint64) Revision { return Revision{Bucket: o.made, Number: number} }

// put writes the object if the one there still has the revision base; the zero
// Revision means that there must be none. Otherwise it is ErrConflict.
func (o *object[T]) put(ctx context.Context, k key, value T, base Revision) (Revision, error) {
	body, err := format.Config.Encode(value)
	if err != nil {
		return Revision{}, err
	}
	var number uint64
	switch {
	case base == (Revision{}):
		number, err = o.kv.Create(ctx, k.entry(), body)
	case base.Bucket != o.made:
		err = ErrConflict
	default:
		number, err = o.kv.Update(ctx, k.entry(), body, base.Number)
	}
	if err != nil {
		return Revision{}, fmt.Errorf("cannot write the %s: %w", o.which(k), translate(err))
	}
	return o.revision(number), nil
}

// remove deletes the object if it still has the revision base, or fails with
// ErrConflict. It returns the revision of the deletion, which KeyValue.Delete
// does not; the message is the one that it would send (NATS ADR-8).
func (o *object[T]) remove(ctx context.Context, k key, base Revision) (Revision, error) {
	if base.Bucket != o.made {
		return Revision{}, fmt.Errorf("cannot delete the %s: %w", o.which(k), ErrConflict)
	}
	deletion := nats.NewMsg("$KV." + o.kv.Bucket() + "." + k.entry())
	deletion.Header.Set("KV-Operation", "DEL")
	ack, err := o.js.PublishMsg(ctx, deletion, jetstream.WithExpectLastSequencePerSubject(base.Number))
	if err != nil {
		return Revision{}, fmt.Errorf("cannot delete the %s: %w", o.which(k), translate(err))
	}
	return o.revision(ack.Sequence), nil
}

// Seen is an object of a tenant as a watch sees it.
type Seen[T any] struct {
	// Name is the object's, if a tenant has several of its kind. It is empty once,
	// with nothing else: after those that were there when the watch began.
	Name string
	// Value is nil when there is none.
	Value *T
	// Number is the revision's; of the deletion when there is none, and 0 when
	// there never was one.
	Number uint64
	// At is when it was written.
	At time.Time
	// Err is why the object that is there cannot be read.
	Err error
}

// watch calls see with the object now and after each change. It returns when
// ctx ends or the store is gone.
func (o *object[T]) watch(ctx context.Context, tenant string, see func(Seen[T])) error {
	first := true
	return o.follow(ctx, tenant, tenant, func(entry jetstream.KeyValueEntry) {
		if entry == nil && first { // The end of the initial values, of which there were none.
			see(Seen[T]{})
		} else if entry != nil {
			first = false
			see(o.seen(entry))
		}
	})
}

// watchAll calls see with each of a tenant's objects, then with the zero Seen,
// and then with each that changes. It returns as watch does.
func (o *object[T]) watchAll(ctx context.Context, tenant string, see func(Seen[T])) error {
	return o.follow(ctx, tenant, tenant+".*", func(entry jetstream.KeyValueEntry) {
		if entry == nil {
			see(Seen[T]{})
			return
		}
		see(o.seen(entry))
	})
}

// follow hands over the entries of some keys now, nil after them, and then each
// that changes.
func (o *object[T]) follow(ctx context.Context, tenant, keys string, take func(jetstream.KeyValueEntry)) error {
	err := watch(ctx, o.kv, keys, func(entry jetstream.KeyValueEntry) bool {
		take(entry)
		return true
	})
	return fmt.Errorf("cannot watch the %s: %w", o.which(key{tenant: tenant}), err)
}

func (o *object[T]) seen(entry jetstream.KeyValueEntry) Seen[T] {
	seen := Seen[T]{Name: keyOf(entry.Key()).name, Number: entry.Revision(), At: entry.Created()}
	if entry.Operation() == jetstream.KeyValuePut {
		value, err := o.decode(entry)
		seen.Value, seen.Err = &value, err
	}
	return seen
}
