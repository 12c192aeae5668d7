package hostfs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Need is how much room an upgrade takes in a folder.
type Need struct {
	Folder string
	Bytes  int64
}

// Filesystem is where a folder is.
type Filesystem struct {
	ID uint64
	// Free is what root may still write, in bytes.
	Free int64
}

// Shortage returns an error of class space if a file system has less room than all
// of its folders need together.
func Shortage(list []Need, at func(folder string) (Filesystem, error)) error {
	wanted, free, folders := map[uint64]int64{}, map[uint64]int64{}, map[uint64][]string{}
	for _, n := range list {
		volume, err := at(n.Folder)
		if err != nil {
			return err
		}
		wanted[volume.ID] += n.Bytes
		free[volume.ID] = volume.Free
		folders[volume.ID] = append(folders[volume.ID], n.Folder)
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if wanted[id] > free[id] {
			return strategy.Fail(message.Space, fmt.Errorf("the upgrade needs %d MiB in %s, and %d MiB are free; %s",
				mebibytes(wanted[id]+1<<20-1), strings.Join(folders[id], " and "), mebibytes(free[id]), remedy.Room))
		}
	}
	return nil
}

func mebibytes(bytes int64) int64 { return bytes >> 20 }
