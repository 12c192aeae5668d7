package run

import (
	"fmt"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
)

// holders knows which runs of a tenant the resources of this process have, so that no two
// resources share one. A state that has a run comes first: its resource may be reached after
// the creation of another one with the same triggers.
type holders struct {
	mu sync.Mutex
	// kept are the runs in a state, taken those that a creation has taken over.
	kept, taken map[uint64]bool
	// requested are the ids of the requests of this process.
	requested map[string]bool
}

// holdersOf returns what the process knows of the runs of a tenant.
func holdersOf(data *providerdata.Data, tenant string) *holders {
	held, _ := data.Once("runs of "+tenant, func() any {
		return &holders{kept: map[uint64]bool{}, taken: map[uint64]bool{}, requested: map[string]bool{}}
	}).(*holders)
	return held
}

// keep records that a state has a run, and reports whether no creation has taken it over.
func (h *holders) keep(id uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken[id] {
		return false
	}
	h.kept[id] = true
	return true
}

// request records the id of a request. It is called before the request is sent: the run may be
// seen before its answer.
func (h *holders) request(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requested[id] = true
}

// take takes a run over for a creation, and reports whether no other resource has it.
func (h *holders) take(id uint64, request string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept[id] || h.taken[id] || h.requested[request] {
		return false
	}
	h.taken[id] = true
	return true
}

// sharedKey is the private state of a resource whose run another one has taken over.
const sharedKey = "shared"

// explainShared says what happens to a resource whose run another one has taken over.
func explainShared(tenant string, id uint64) string {
	return fmt.Sprintf("Run %d of tenant %s was in progress when another %s of this configuration with the same triggers was created, and that one has taken it over. "+
		"The next apply starts another run for this resource. To tell the two apart, give them different triggers.", id, tenant, TypeName)
}
