package message

import (
	"cmp"
	"fmt"
	"time"
)

// Locked tells that a host that reboots by itself may do so: it is out of service until it is
// unlocked. It belongs to no run.
type Locked struct {
	Host string `json:"host"`
	// Environment is the environment of the host when it was locked; empty for the default one.
	Environment string `json:"environment,omitempty"`
	// Since is when it was locked, of a lock that is told again so that the records before it can
	// be trimmed; zero for one that begins with this record.
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by,omitempty"`
	// Cells are the cells of the host; they count if it is in no roster. Budgets identifies the budgets
	// that they are of, which are those in force: the records that say so may be trimmed.
	Budgets string `json:"budgets,omitempty"`
	Cells   []Cell `json:"cells,omitempty"`
}

// Unlocked tells that a host that was locked is in service again, or that somebody has freed its
// lock.
type Unlocked struct {
	Host string `json:"host"`
	By   string `json:"by,omitempty"`
	Why  string `json:"why,omitempty"`
}

func (Locked) name() string   { return "locked" }
func (Unlocked) name() string { return "unlocked" }

func (e Locked) check() error {
	if err := cmp.Or(checkHosts([]string{e.Host}), checkEnvironment(e.Environment)); err != nil {
		return err
	}
	if err := checkCells(e.Cells, map[string]bool{e.Host: true}); err != nil {
		return fmt.Errorf("%s: %w", e.Host, err)
	}
	return nil
}
