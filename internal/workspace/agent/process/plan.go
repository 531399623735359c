// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// shellPath is not looked up: what PATH leads to may have been put there by a command.
	shellPath = "/bin/sh"
	// defaultPath is where execvp looks if there is no PATH.
	defaultPath = "/bin:/usr/bin"
	// maxShown bounds the command as it is remembered and shown.
	maxShown = 4 << 10
)

// plan is what a command will be.
type plan struct {
	initproc.Spec
	// shown is the command for people and models.
	shown string
}

// newPlan checks a request. It looks at the file system, which may take its time.
func newPlan(options *Options, r *protocol.StartRequest) (*plan, error) {
	if (r.Command == "") == (len(r.Argv) == 0) {
		return nil, refuse(protocol.BadRequest, "Set exactly one of command and argv.")
	}
	if err := checkWords(r); err != nil {
		return nil, err
	}
	dir, err := directory(options.Directory, r.Dir)
	if err != nil {
		return nil, err
	}
	container := options.Environment
	p := &plan{Spec: initproc.Spec{
		Dir: dir, Env: environment(container, dir, forAgents, trustFiles(container), r.Env),
	}}
	if r.Command != "" {
		if err := executable(shellPath); err != nil {
			return nil, refuse(protocol.NoShell, "The workspace's image has no %s.", shellPath)
		}
		p.Path, p.Argv, p.shown = shellPath, []string{"sh", "-c", r.Command}, shown(r.Command)
		return p, nil
	}
	p.Argv, p.shown = r.Argv, shown(shellJoin(r.Argv))
	p.Path, err = lookUp(p.Argv[0], dir, p.Env)
	return p, err
}

// checkWords refuses words that cannot be arguments or variables of a program.
func checkWords(r *protocol.StartRequest) error {
	for _, word := range append([]string{r.Command, r.Dir}, r.Argv...) {
		if strings.ContainsRune(word, 0) {
			return refuse(protocol.BadRequest, "A command and its directory cannot contain the character NUL.")
		}
	}
	if len(r.Argv) > 0 && r.Argv[0] == "" {
		return refuse(protocol.BadRequest, "The first word of argv, the program, is empty.")
	}
	for _, v := range r.Env {
		if at := strings.IndexByte(v, '='); at <= 0 || strings.ContainsRune(v, 0) {
			return refuse(protocol.BadRequest, "%.60q is no variable of an environment: NAME=VALUE is, without NUL.", v)
		}
	}
	return nil
}

// directory is where a command runs.
func directory(workspace, dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(workspace, dir)
	}
	dir = filepath.Clean(dir)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", refuse(protocol.PermissionDenied, "The directory %s cannot be entered: permission denied.", dir)
	case err != nil:
		return "", refuse(protocol.NotFound, "There is no directory %s.", dir)
	case !info.IsDir():
		return "", refuse(protocol.BadRequest, "%s is no directory.", dir)
	}
	return dir, nil
}

// errNoProgram: something is there that cannot be run.
var errNoProgram = errors.New("it cannot be run")

// executable reports by its error why a path is no program that can be run.
func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s is a directory: %w", path, errNoProgram)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Errorf("%s: %w: %w", path, errNoProgram, err)
	}
	return nil
}

// lookUp finds a program as execvp does in the command's own environment: a name with a slash is a path.
func lookUp(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	places, ok := variable(env, "PATH")
	if !ok {
		places = defaultPath
	}
	denied := false
	for place := range strings.SplitSeq(places, ":") {
		if !filepath.IsAbs(place) { // An empty one is the command's directory.
			place = filepath.Join(dir, place)
		}
		path := filepath.Join(place, name)
		err := executable(path)
		if err == nil {
			return path, nil
		}
		denied = denied || errors.Is(err, errNoProgram)
	}
	if denied {
		return "", refuse(protocol.CannotStart, "%s cannot be run: permission denied.", shellJoin([]string{name}))
	}
	return "", refuse(protocol.CannotStart, "%s is no program in PATH, which is %s.", shellJoin([]string{name}), places)
}

// shown is a command as it is remembered: valid UTF-8, and cut if it is long.
func shown(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) > maxShown {
		return clip.Bytes(text, maxShown) + "…"
	}
	return text
}

// plain is a word that a shell takes as it stands.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellJoin joins the words to a line that a shell splits into the same words.
func shellJoin(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if quoted[i] = word; !plain.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
