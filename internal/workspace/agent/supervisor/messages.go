// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"syscall"
	"unsafe"
)

// Kind is what a supervisor reports.
type Kind int32

const (
	// Started means that the command runs; the value is its process id.
	Started Kind = 1 + iota
	// Failed means that the command could not be started; the value is the errno.
	Failed
	// Exited means that the command's own process has, with the value as its status. What it has started still runs.
	Exited
	// Over means the same, and that nothing else is left.
	Over
)

// Report is what a supervisor writes to process 1, at once, in a pipe that all supervisors have.
type Report struct {
	// Supervisor is its process id.
	Supervisor int
	Kind       Kind
	Value      int
}

// ReportBytes is the length of a report. A pipe takes so little as a whole or not at all.
const ReportBytes = 12

func (r Report) encode() (raw [ReportBytes]byte) {
	for i, n := range []int32{int32(r.Supervisor), int32(r.Kind), int32(r.Value)} {
		*(*int32)(unsafe.Pointer(&raw[4*i])) = n
	}
	return raw
}

// ParseReport reads a report.
func ParseReport(raw [ReportBytes]byte) Report {
	number := func(i int) int { return int(*(*int32)(unsafe.Pointer(&raw[4*i]))) }
	return Report{Supervisor: number(0), Kind: Kind(number(1)), Value: number(2)}
}

// command is what a supervisor starts.
type command struct {
	path, dir string
	env, argv []string
}

// Encode makes the plan of a supervisor: the path of the program, the directory to start it in, its environment, an
// empty word, and its arguments. Each word ends with NUL, which none can have. Empty variables are omitted.
func Encode(path, dir string, env, argv []string) ([]byte, error) {
	if path == "" || len(argv) == 0 {
		return nil, syscall.EINVAL
	}
	var encoded []byte
	broken := false
	add := func(word string) {
		for i := range len(word) {
			broken = broken || word[i] == 0
		}
		encoded = append(append(encoded, word...), 0)
	}
	add(path)
	add(dir)
	for _, word := range env {
		if word != "" {
			add(word)
		}
	}
	add("")
	for _, word := range argv {
		add(word)
	}
	if broken {
		return nil, syscall.EINVAL
	}
	return encoded, nil
}

// decode reads a plan. Its words are those bytes, which must not change.
func decode(plan []byte) (command, error) {
	var words []string
	begin, end := 0, -1 // of the environment
	for i, b := range plan {
		if b != 0 {
			continue
		}
		if i == begin && end < 0 && len(words) > 1 {
			end = len(words)
		} else {
			words = append(words, unsafe.String(&plan[begin], i-begin))
		}
		begin = i + 1
	}
	if end < 0 || end == len(words) || words[0] == "" {
		return command{}, syscall.EINVAL
	}
	return command{path: words[0], dir: words[1], env: words[2:end], argv: words[end:]}, nil
}
