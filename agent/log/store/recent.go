package store

import (
	"sync"
)

// recent keeps the objects of the intent that were read last, so that a read asks the
// server once and not for each request.
//
// An object is kept while its tenant is watched (Store.WatchIntent): a change by another
// process is dropped when the watch sees it. A write of this process drops the object
// before the write is acknowledged, whatever came of it, so who reads after a write finds
// that write. A value that is kept is returned again and again: nobody changes one.
type recent struct {
	mu sync.Mutex
	// watches counts the watches of each tenant that have seen all that there was when
	// they began.
	watches map[string]int
	objects map[intentKey]recentObject
	size    int
	// dropped counts what was dropped: what was read from the server before may be older.
	dropped uint64
}

type recentObject struct {
	value  any
	number uint64
	size   int
}

// maxRecent bounds what is kept, in bytes of the stored form. All is dropped when it is
// reached: that takes thousands of tenants.
const maxRecent = 16 << 20

// get returns an object that is kept and its number.
func (r *recent) get(k intentKey) (value any, number uint64, kept bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, kept := r.objects[k]
	return o.value, o.number, kept
}

// reading notes the beginning of a read from the server; keep takes what it returns.
func (r *recent) reading() (begun uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// keep keeps an object that was read, unless something was dropped since the read began,
// or a read that was faster has kept a newer one.
func (r *recent) keep(k intentKey, o recentObject, begun uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watches[k.tenant] == 0 || r.dropped != begun || r.objects[k].number > o.number {
		return
	}
	if r.size -= r.objects[k].size; r.size+o.size > maxRecent {
		clear(r.objects)
		r.size = 0
	}
	if r.objects == nil {
		r.objects = map[intentKey]recentObject{}
	}
	r.objects[k] = o
	r.size += o.size
}

// drop drops an object, unless it has this number: what a watch sees may be what was read.
// No object has number 0.
func (r *recent) drop(k intentKey, number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, kept := r.objects[k]; kept && o.number == number {
		return
	}
	r.remove(k)
}

func (r *recent) remove(k intentKey) {
	r.dropped++
	r.size -= r.objects[k].size
	delete(r.objects, k)
}

// watched notes that a watch of a tenant sees each further change; unwatched that it has
// ended.
func (r *recent) watched(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watches == nil {
		r.watches = map[string]int{}
	}
	r.watches[tenant]++
}

func (r *recent) unwatched(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watches[tenant]--; r.watches[tenant] > 0 {
		return
	}
	delete(r.watches, tenant)
	r.dropped++
	for k := range r.objects {
		if k.tenant == tenant {
			r.remove(k)
		}
	}
}
