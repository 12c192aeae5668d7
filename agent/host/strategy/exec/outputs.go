package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
)

// givenFolder is the folder in StateDir with the outputs of steps, while a script may read them.
const givenFolder = "given"

// UsesOutputs implements strategy.OutputsUser: a program gets no outputs, only a script can use them.
func (s *Strategy) UsesOutputs() bool { return s.program == nil }

// givenOutputs writes the outputs of the steps of the run into a folder that only this user can read,
// and returns it; empty if there are none. Called with the lock held, it first removes what an earlier
// script had, which has ended since.
func (s *Strategy) givenOutputs(ctx context.Context, c call) (folder string, err error) {
	if !s.UsesOutputs() {
		return "", nil
	}
	folder = filepath.Join(s.stateDir, givenFolder)
	if err := os.RemoveAll(folder); err != nil || c.job.Outputs == nil {
		return "", err
	}
	outputs, err := c.job.Outputs(ctx)
	if err != nil {
		return "", fmt.Errorf("cannot get the outputs of the steps before it: %w", err)
	}
	if len(outputs) == 0 {
		return "", nil
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	if err := script.WriteOutputs(folder, outputs); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}
