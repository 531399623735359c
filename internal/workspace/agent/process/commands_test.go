// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"log"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// headlessVariable makes the test binary a command whose first thread has ended.
const headlessVariable = "TEST_HEADLESS"

func init() {
	if os.Getenv(headlessVariable) != "" {
		runtime.LockOSThread() // main runs in the first thread, and stays there.
	}
}

// headless ends the first thread. Another one says goodbye when SIGTERM comes, which takes it a moment.
func headless() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	say := log.New(os.Stdout, "", 0)
	go func() {
		say.Print("up")
		<-signals
		<-time.After(200 * time.Millisecond)
		say.Print("bye")
		os.Exit(8)
	}()
	_, _, _ = syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0) // It does not return.
}

// listenerVariable makes the test binary a command that says which signals it gets.
const listenerVariable = "TEST_LISTENER"

// listeners are the command itself, and its children: one in its process group, one with a group of its own, one with a
// session of its own.
var listeners = []string{"leader", "child", "group", "session"}

// listenForSignals tells the signals that come. The leader starts the others.
func listenForSignals(who string) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	say := log.New(os.Stdout, "", 0)
	if who == "leader" {
		for name, attributes := range map[string]*syscall.SysProcAttr{
			"child": {}, "group": {Setpgid: true}, "session": {Setsid: true},
		} {
			c := exec.Command("/proc/self/exe")
			c.Env, c.Stdout, c.SysProcAttr = append(os.Environ(), listenerVariable+"="+name), os.Stdout, attributes
			if err := c.Start(); err != nil {
				log.Fatal(err)
			}
		}
	}
	say.Print(who, " is up")
	for s := range signals {
		say.Print(who, " has ", s)
	}
}
