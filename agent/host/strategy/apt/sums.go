package apt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/remedy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// apt compares the sum of an archive when it fetches it, and afterwards only its size. So
// prepare keeps the sums, and both prepare and upgrade compare the archives with them.

// sums are the sums of archives (SHA-256, hexadecimal), by "name=version".
type sums map[string]string

// sumsOf returns the sums that the lists have of a plan's archives. An archive that apt reads
// where it is, and does not fetch, has none.
func (s *Strategy) sumsOf(changes []message.Change, archives map[string]archive) sums {
	all := sums{}
	for _, c := range changes {
		key := target{c.Name, c.To}.argument()
		if sum := archives[key].sum; c.To != "" && sum != "" && s.archiveOf(c) != "" {
			all[key] = sum
		}
	}
	return all
}

func (s *Strategy) sumsFile() string { return filepath.Join(s.StateDir, "sums.json") }

// keepSums keeps the sums on disk for the upgrade.
func (s *Strategy) keepSums(all sums) error {
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		return err
	}
	return durable.WriteFile(s.sumsFile(), data, 0o600)
}

// keptSums returns the sums of the last preparation; none if that kept none.
func (s *Strategy) keptSums() (all sums, err error) {
	data, err := os.ReadFile(s.sumsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the sums of the archives: %w; %s", err, remedy.PrepareAgain)
	}
	return all, nil
}

// dropDamaged removes the archives of a plan that differ from their sums, so that apt fetches
// them again. It returns those, and those that are not there any more.
func (s *call) dropDamaged(changes []message.Change, known sums) (lacking []message.Change, err error) {
	for _, c := range changes {
		sum := known[target{c.Name, c.To}.argument()]
		if c.To == "" || sum == "" {
			continue
		}
		file := s.archiveOf(c)
		if file != "" {
			has, err := sumOfFile(file)
			if err == nil && has == sum {
				continue
			}
			s.progress(-1, fmt.Sprintf("the archive of %s %s is damaged; it is fetched again", c.Name, c.To))
			if err := os.Remove(file); err != nil {
				return nil, fmt.Errorf("cannot remove a damaged archive: %w", err)
			}
		}
		lacking = append(lacking, c)
	}
	return lacking, nil
}

// checkArchives compares the archives of a plan with the sums that prepare has kept, and fetches
// again what differs.
func (s *call) checkArchives(ctx context.Context, changes []message.Change) error {
	known, err := s.keptSums()
	if err != nil {
		return err
	}
	return s.mendArchives(ctx, changes, known)
}

// mendArchives fetches again what differs from its sum among the archives of a plan.
func (s *call) mendArchives(ctx context.Context, changes []message.Change, known sums) error {
	lacking, err := s.dropDamaged(changes, known)
	if err != nil || len(lacking) == 0 {
		return err
	}
	if err := s.fetchArchives(ctx, span{0, 10}, install(changes)); err != nil {
		return err
	}
	if lacking, err = s.dropDamaged(changes, known); err != nil || len(lacking) == 0 {
		return err
	}
	return strategy.Fail(message.Artifact, fmt.Errorf("%s differ from the sums of the repository though they were just fetched again; check the disk of %s and the memory of this host",
		few(installArguments(lacking)), archivesFolder))
}

func sumOfFile(name string) (sum string, err error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
