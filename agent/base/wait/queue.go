package wait

import (
	"container/list"
	"context"
	"sync"
)

// Queue keeps the latest value of each key until it is taken, in the order in
// which the keys came. It grows with the number of keys alone, however often
// their values change.
type Queue[K comparable, V any] struct {
	ready Signal
	mu    sync.Mutex
	order *list.List // of *Item[K, V]
	items map[K]*list.Element
}

// Item is the value of a key at some time.
type Item[K comparable, V any] struct {
	Key   K
	Value V
	// change counts the changes of the value.
	change int
}

// NewQueue makes an empty queue.
func NewQueue[K comparable, V any]() *Queue[K, V] {
	return &Queue[K, V]{ready: NewSignal(), order: list.New(), items: map[K]*list.Element{}}
}

// Put replaces the value of a key.
func (q *Queue[K, V]) Put(key K, value V) { q.Change(key, func(v *V) { *v = value }) }

// Change changes the value of a key, which is zero at first. change is called
// with the queue locked.
func (q *Queue[K, V]) Change(key K, change func(*V)) {
	q.mu.Lock()
	element, queued := q.items[key]
	if !queued {
		element = q.order.PushBack(&Item[K, V]{Key: key})
		q.items[key] = element
	}
	item := q.of(element)
	change(&item.Value)
	item.change++
	q.mu.Unlock()
	q.ready.Set()
}

// Revise changes the values of all keys that are queued. change is called with the queue locked.
func (q *Queue[K, V]) Revise(change func(K, *V)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := q.order.Front(); e != nil; e = e.Next() {
		item := q.of(e)
		change(item.Key, &item.Value)
		item.change++
	}
}

// Ready receives once there may be something to take.
func (q *Queue[K, V]) Ready() <-chan struct{} { return q.ready }

// First returns the item whose key has been queued for the longest, and leaves it
// there; false when the queue is empty.
func (q *Queue[K, V]) First() (item Item[K, V], found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if front := q.order.Front(); front != nil {
		return *q.of(front), true
	}
	return item, false
}

// Of returns the item of a key, and leaves it there; false when it is not queued.
func (q *Queue[K, V]) Of(key K) (item Item[K, V], found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if element, queued := q.items[key]; queued {
		return *q.of(element), true
	}
	return item, false
}

// Done removes an item that First or Of has returned, unless it has changed since.
func (q *Queue[K, V]) Done(item Item[K, V]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if element, queued := q.items[item.Key]; queued && q.of(element).change == item.change {
		q.remove(element)
	}
}

// Defer puts an item that First has returned behind all others, if it is still queued.
func (q *Queue[K, V]) Defer(item Item[K, V]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if element, queued := q.items[item.Key]; queued {
		q.order.MoveToBack(element)
	}
}

// Drop removes a key.
func (q *Queue[K, V]) Drop(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if element, queued := q.items[key]; queued {
		q.remove(element)
	}
}

// Len returns how many keys are queued.
func (q *Queue[K, V]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.Len()
}

// Items returns all items, and leaves them there.
func (q *Queue[K, V]) Items() []Item[K, V] {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all()
}

// Take removes all items and returns them.
func (q *Queue[K, V]) Take() []Item[K, V] {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.all()
	q.order.Init()
	clear(q.items)
	return items
}

// Wait waits until there is something to take. Its error is that of a context
// that has ended, also when there is something.
func (q *Queue[K, V]) Wait(ctx context.Context) error {
	for ctx.Err() == nil {
		if _, found := q.First(); found {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-q.ready:
		}
	}
	return ctx.Err()
}

func (q *Queue[K, V]) all() []Item[K, V] {
	items := make([]Item[K, V], 0, q.order.Len())
	for e := q.order.Front(); e != nil; e = e.Next() {
		items = append(items, *q.of(e))
	}
	return items
}

func (q *Queue[K, V]) of(element *list.Element) *Item[K, V] {
	item, _ := element.Value.(*Item[K, V])
	return item
}

func (q *Queue[K, V]) remove(element *list.Element) {
	q.order.Remove(element)
	delete(q.items, q.of(element).Key)
}
