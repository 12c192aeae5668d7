package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"slices"
	"syscall"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// maxRequest is what a pipe takes at once on every system: the request is
// written before the script starts, so that it is whole though the worker dies.
const maxRequest = 4096

// start starts a script with the lock and its request.
func (s *Strategy) start(a action, job strategy.Job, lock *os.File, out *output) (p *script.Process, err error) {
	stdin, err := requestPipe(ask(a, job))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stdin.Close()) }()
	inherited := make([]*os.File, lockFD-2)
	inherited[lockFD-3] = lock
	return script.Start(&osexec.Cmd{
		Path:       s.script(a),
		Args:       []string{s.script(a)},
		Dir:        s.dir,
		Env:        slices.Concat(s.env, jobEnvironment(a, job)),
		Stdin:      stdin,
		Stdout:     out.stdout(),
		Stderr:     out.log,
		ExtraFiles: inherited,
	})
}

// requestPipe returns the reading end of a pipe that holds the request.
func requestPipe(r request) (*os.File, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(data) >= maxRequest {
		return nil, fmt.Errorf("its input is %d bytes; at most %d", len(data), maxRequest-1)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = writer.Write(append(data, '\n'))
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	return reader, nil
}
