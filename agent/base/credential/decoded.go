package credential

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Decoded returns the entries of a store as what they mean. It decodes an entry once, and
// again when it has changed. It asks the store each time, so what was changed or withdrawn
// counts for the next Get.
//
// The values are returned again and again: nobody changes what they point to.
type Decoded[T any] struct {
	stored Store
	// noun is what people call an entry, with its article.
	noun   string
	decode func(name string, body []byte) (T, error)

	mu   sync.Mutex
	kept map[string]decoded[T]
}

type decoded[T any] struct {
	body  []byte
	value T
	err   error
}

// maxDecoded bounds how many entries are kept. All are dropped when it is reached: some of
// them may have been withdrawn, and nobody asks for those.
const maxDecoded = 10_000

// NewDecoded returns the entries of a store, each a noun, as decode returns them. What decode
// returns is a function of its arguments.
func NewDecoded[T any](stored Store, noun string, decode func(name string, body []byte) (T, error)) *Decoded[T] {
	return &Decoded[T]{stored: stored, noun: noun, decode: decode, kept: map[string]decoded[T]{}}
}

// Get returns an entry; os.ErrNotExist when there is none of that name.
func (d *Decoded[T]) Get(name string) (value T, err error) {
	body, err := d.stored.Get(name)
	if err != nil {
		d.drop(name)
		return value, fmt.Errorf("cannot look up %s: %w", d.noun, err)
	}
	d.mu.Lock()
	known, found := d.kept[name]
	d.mu.Unlock()
	if found && bytes.Equal(known.body, body) {
		return known.value, known.err
	}
	value, err = d.decode(name, body)
	d.keep(name, decoded[T]{body: body, value: value, err: err})
	return value, err
}

// Stored is an entry of a store as what it means.
type Stored[T any] struct {
	// Key is its name in the store, Made when it was put.
	Key   string
	Made  time.Time
	Value T
	// Damage is why nobody knows what it means.
	Damage error
}

// List returns the entries whose names begin with a prefix, in the order of their names.
func (d *Decoded[T]) List(prefix string) ([]Stored[T], error) {
	entries, err := d.stored.List()
	if err != nil {
		return nil, err
	}
	all := make([]Stored[T], 0, len(entries))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name, prefix) {
			continue
		}
		value, err := d.Get(e.Name)
		if errors.Is(err, os.ErrNotExist) {
			continue // It was removed meanwhile.
		}
		all = append(all, Stored[T]{Key: e.Name, Made: e.Made, Value: value, Damage: err})
	}
	return all, nil
}

func (d *Decoded[T]) keep(name string, one decoded[T]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.kept) >= maxDecoded {
		clear(d.kept)
	}
	d.kept[name] = one
}

func (d *Decoded[T]) drop(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.kept, name)
}
