package credential

import (
	"fmt"
	"sync"
	"time"
)

// Decoded returns the entries of a store as what they mean. It decodes an entry once, and
// again when the store says that it is another one. It asks the store each time, so what was
// changed or withdrawn counts for the next Get, whoever did it.
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
	entry Entry
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
	entry, err := d.stored.Stat(name)
	if err != nil {
		d.drop(name)
		return value, fmt.Errorf("cannot look up %s: %w", d.noun, err)
	}
	d.mu.Lock()
	known, found := d.kept[name]
	d.mu.Unlock()
	if found && known.entry.Same(entry) {
		return known.value, known.err
	}
	body, err := d.stored.Get(name)
	if err != nil {
		return value, fmt.Errorf("cannot look up %s: %w", d.noun, err)
	}
	value, err = d.decode(name, body)
	if entry.settled(time.Now()) {
		d.keep(name, decoded[T]{entry: entry, value: value, err: err})
	}
	return value, err
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
