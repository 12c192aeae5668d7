package principal

import "sync"

// maxPlaces bounds the places that are remembered: the one that was not seen for longest goes.
const maxPlaces = 1000

// Places are the addresses and networks from which somebody has proved who they are. What is
// reserved for them cannot be taken from any number of other places. They are forgotten when the
// site is restarted, until a request from there has a good token again.
type Places struct {
	mu    sync.Mutex
	clock uint64
	seen  map[string]uint64
}

// Add remembers a place.
func (p *Places) Add(place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]uint64{}
	}
	if _, known := p.seen[place]; !known && len(p.seen) >= maxPlaces {
		p.dropOldest()
	}
	p.clock++
	p.seen[place] = p.clock
}

func (p *Places) dropOldest() {
	var oldest string
	last := p.clock + 1
	for place, seen := range p.seen {
		if seen < last {
			oldest, last = place, seen
		}
	}
	delete(p.seen, oldest)
}

// Has reports whether somebody has proved there who they are. The empty place is that of a
// request that has done so.
func (p *Places) Has(place string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.seen[place]
	return known || place == ""
}
