package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// closeTime is how long to wait for the end of the outputs after the script has ended: a process that
// it left behind, such as a daemon that it has started, may hold the pipe open.
const closeTime = time.Second

// withOutputs runs a script that finds the outputs of earlier steps in a folder, which is removed at
// the end, and writes its own to descriptor 3. It returns these.
func (r *Runner) withOutputs(ctx context.Context, t message.Task, cmd *exec.Cmd) (values map[string]string, err error) {
	folder, err := r.outputsFolder(t.Outputs)
	if err != nil {
		return nil, fmt.Errorf("cannot hand it the outputs of earlier steps: %w", err)
	}
	if folder != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		cmd.Env = append(cmd.Env, script.OutputsEnvironment(folder)...)
	}
	if len(t.Gives) == 0 {
		return nil, runProgram(ctx, cmd)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	cmd.ExtraFiles = []*os.File{writer}
	written := make(chan []byte, 1)
	go func() {
		kept, _ := io.ReadAll(io.LimitReader(reader, rollout.MaxOutputs+1))
		_, _ = io.Copy(io.Discard, reader) // Else the script would wait for somebody to read.
		written <- kept
	}()
	err = runProgram(ctx, cmd)
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, err
	}
	if err := reader.SetReadDeadline(time.Now().Add(closeTime)); err != nil {
		return nil, err
	}
	return message.ParseOutputs(<-written, t.Gives)
}

// Clean removes the outputs that a process before this one has left behind, because it was killed.
func (r *Runner) Clean() error {
	if r.Outputs == "" {
		return nil
	}
	return os.RemoveAll(r.Outputs)
}

// outputsPrefix begins the name of each folder of outputs.
const outputsPrefix = "osupgrade-outputs-"

// outputsFolder writes outputs into a folder that only this user can read; empty when there are none.
func (r *Runner) outputsFolder(outputs map[string]string) (folder string, err error) {
	if len(outputs) == 0 {
		return "", nil
	}
	if r.Outputs != "" {
		if err := os.MkdirAll(r.Outputs, 0o700); err != nil {
			return "", err
		}
	}
	if folder, err = os.MkdirTemp(r.Outputs, outputsPrefix); err != nil {
		return "", err
	}
	if err := script.WriteOutputs(folder, outputs); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}
