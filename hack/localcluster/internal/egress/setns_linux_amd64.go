// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

// sysSetns is the number of the system call setns, which package syscall does not have.
const sysSetns = 308
