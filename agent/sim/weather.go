package sim

import (
	"maps"
	"slices"
)

// fault is something that goes wrong by chance.
type fault struct {
	// group are the faults that a seed has all or none of, p is how likely it
	// is each time that it could happen.
	group string
	p     float64
}

// faults are all that goes wrong by chance. Each must happen in 10,000 seeds.
var faults = map[string]fault{
	"append: request lost":      {"log", 0.02},
	"append: late":              {"log", 0.02},
	"append: acknowledged late": {"log", 0.02},
	"append: ack lost":          {"log", 0.04},
	"append: hangs":             {"log", 0.01},
	"follow: stalls":            {"log", 0.01},
	"follow: breaks":            {"log", 0.003},
	"log: asked in vain":        {"log", 0.02},

	"crash log before append": {"log crash", 0.01},
	"crash log after append":  {"log crash", 0.02},

	"call: lost":         {"net", 0.03},
	"call: doubled":      {"net", 0.05},
	"call: delayed":      {"net", 0.03},
	"call: answer lost":  {"net", 0.03},
	"push: lost":         {"net", 0.05},
	"push: doubled":      {"net", 0.1},
	"push: delayed":      {"net", 0.1},
	"heartbeat: lost":    {"net", 0.05},
	"heartbeat: doubled": {"net", 0.02},
	"heartbeat: delayed": {"net", 0.02},
	"task: lost":         {"net", 0.1},
	"task: doubled":      {"net", 0.1},
	"task: delayed":      {"net", 0.1},
	"outcome: lost":      {"net", 0.1},
	"outcome: doubled":   {"net", 0.1},
	"outcome: delayed":   {"net", 0.1},
	"seat news: lost":    {"net", 0.3},
	"seat news: doubled": {"net", 0.1},
	"seat news: delayed": {"net", 0.2},
	"ask: lost":          {"net", 0.1},
	"ask: doubled":       {"net", 0.1},
	"ask: delayed":       {"net", 0.1},

	"replay: old command":       {"replay", 0.1},
	"replay: another's command": {"replay", 0.01},

	"crash of a worker":     {"crash worker", 0.012},
	"crash of a machine":    {"crash worker", 0.008},
	"crash of a controller": {"crash controller", 0.01},

	"prepare fails":            {"host", 0.03},
	"upgrade fails at once":    {"host", 0.04},
	"upgrade fails in the end": {"host", 0.05},
	"upgrade hangs":            {"host", 0.02},
	"upgrade is slow":          {"host", 0.1},
	"verify fails":             {"host", 0.05},
	"rollback fails":           {"host", 0.3},
	"reboot is refused":        {"host", 0.08},
	"reboot is ignored":        {"host", 0.08},
	"reboot is late":           {"host", 0.08},
	"reboot call hangs":        {"host", 0.04},
	"boot is slow":             {"host", 0.1},
	"machine stays down":       {"host", 0.05},
	"soft-reboot":              {"host", 0.05},
	"power cut in an upgrade":  {"host", 0.06},
	"versions cannot be had":   {"host", 0.05},
	"strategy does not fit":    {"host", 0.01},
	"task fails":               {"task", 0.1},
	"task hangs":               {"task", 0.03},
	"journal: disk full":       {"disk", 0.02},
	"journal: lost":            {"disk", 0.05},
	"journal: damaged":         {"disk", 0.01},
	"store: write fails":       {"store", 0.1},
	"store: watch breaks":      {"store", 0.01},
	"store: read fails":        {"store", 0.02},
}

// strengths are how often the faults of a group happen in a seed, as a
// multiple: half of all seeds are spared each.
var strengths = []float64{0, 0, 0, 1, 1, 3}

// fault decides whether something goes wrong. Nothing does once it is calm.
func (w *World) fault(what, whose string) bool {
	f := faults[what]
	if f.p == 0 {
		panic("sim: there is no fault " + what)
	}
	if w.calm.Load() || !w.dice.chance(what+"/"+whose, f.p*w.strength[f.group]) {
		return false
	}
	w.count(what)
	return true
}

// Faults returns the names of all faults that are drawn by chance.
func Faults() []string { return slices.Sorted(maps.Keys(faults)) }
