package principal

import "sync"

// maxSources bounds the sources that are remembered: the one that was not seen for longest goes.
const maxSources = 1000

// Sources are the addresses and networks from which somebody has proved who they are. What is
// reserved for them cannot be taken from any number of other sources. They are forgotten when the
// site is restarted, until a request from there has a good token again.
type Sources struct {
	mu    sync.Mutex
	clock uint64
	seen  map[string]uint64
}

// Add remembers a source.
func (p *Sources) Add(source string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string]uint64{}
	}
	if _, known := p.seen[source]; !known && len(p.seen) >= maxSources {
		p.dropOldest()
	}
	p.clock++
	p.seen[source] = p.clock
}

func (p *Sources) dropOldest() {
	var oldest string
	last := p.clock + 1
	for source, seen := range p.seen {
		if seen < last {
			oldest, last = source, seen
		}
	}
	delete(p.seen, oldest)
}

// Has reports whether somebody has proved there who they are. The empty source is that of a
// request that has done so.
func (p *Sources) Has(source string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.seen[source]
	return known || source == ""
}
