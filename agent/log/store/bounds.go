package store

// bounds are how many objects of a kind each tenant has at most, since they were counted last. Whoever
// uses them holds a lock.
type bounds struct {
	most map[string]int
}

// of returns the bound of a tenant; false if its objects were not counted yet.
func (b *bounds) of(tenant string) (most int, counted bool) {
	most, counted = b.most[tenant]
	return most, counted
}

// counted notes how many objects a tenant has.
func (b *bounds) counted(tenant string, n int) {
	if b.most == nil {
		b.most = map[string]int{}
	}
	b.most[tenant] = n
}

// add notes that a tenant may have one more.
func (b *bounds) add(tenant string) {
	if n, counted := b.of(tenant); counted {
		b.counted(tenant, n+1)
	}
}
