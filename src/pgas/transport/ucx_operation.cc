// SPDX-License-Identifier: BSD-3-Clause
#include "pgas/transport/ucx_operation.h"

namespace gimlet::pgas::ucx {

Operation& OperationPool::take(OperationKind kind, Lane* lane, bool awaited) {
  if (unused_.empty()) {
    Operation& made = all_.emplace_back();
    made.index = static_cast<std::uint32_t>(all_.size() - 1);
    made.transport = &transport_;
    unused_.push_back(&made);
  }
  Operation& op = *unused_.back();
  unused_.pop_back();
  op.kind = kind;
  op.lane = lane;
  op.awaited = awaited;
  op.finished = false;
  op.posted = true;
  op.source_free = true;
  op.whole = nullptr;
  op.carried = nullptr;
  op.piece = nullptr;
  op.result = nullptr;
  op.parts = 0;
  op.signal_sequence = 0;
  op.staged_to = 0;
  op.stage = Operation::Stage::kPut;
  return op;
}

void OperationPool::give_back(Operation& op) {
  op.error = {};
  op.copy = {};
  ++op.generation;
  unused_.push_back(&op);
}

Operation* OperationPool::find(std::uint64_t ticket) {
  const auto index = static_cast<std::uint32_t>(ticket);
  if (index >= all_.size() || all_[index].ticket() != ticket) return nullptr;
  return all_[index].finished ? nullptr : &all_[index];
}

void Lane::link(Operation& op) {
  Operation& head = op.carried == nullptr ? open : carried;
  op.before = head.before;
  op.after = &head;
  op.before->after = &op;
  head.before = &op;
  op.linked = true;
  ++operations;
  if (op.kind == OperationKind::kPutSignal) ++put_signals;
  if (op.kind == OperationKind::kDrain) ++drains;
}

void Lane::unlink(Operation& op) {
  if (!op.linked) return;
  op.before->after = op.after;
  op.after->before = op.before;
  op.linked = false;
  --operations;
  if (op.kind == OperationKind::kPutSignal) --put_signals;
  if (op.kind == OperationKind::kDrain) --drains;
}

}  // namespace gimlet::pgas::ucx
