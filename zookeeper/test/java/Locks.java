import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;

/** Locks are held by the thread of their name. Limits are milliseconds; what is acquired in time replies true. */
final class Locks {
  private Locks() {}

  private static boolean acquire(InterProcessMutex lock, List<String> arguments) throws Exception {
    return lock.acquire(Long.parseLong(arguments.get(0)), TimeUnit.MILLISECONDS);
  }

  /** PATH; event revoke, when somebody asks for it. */
  static final class Mutex implements Peer.Recipe {
    private final CuratorFramework client;
    private final InterProcessMutex mutex;

    Mutex(CuratorFramework client, String name, List<String> arguments) {
      this.client = client;
      mutex = new InterProcessMutex(client, arguments.get(0));
      mutex.makeRevocable((any) -> Peer.event(name, "revoke"));
    }

    @Override
    public List<String> call(String operation, List<String> arguments) throws Exception {
      switch (operation) {
        case "acquire":
          return Peer.words(acquire(mutex, arguments));
        case "release":
          mutex.release();
          return Peer.words();
        case "isHeld":
          return Peer.words(mutex.isOwnedByCurrentThread());
        case "participants":
          return new ArrayList<>(mutex.getParticipantNodes());
        case "revoke": // asks the holder of the node given
          Revoker.attemptRevoke(client, arguments.get(0));
          return Peer.words();
        default:
          throw Peer.unknown(operation);
      }
    }
  }

  /** PATH */
  static final class ReadWrite implements Peer.Recipe {
    private final InterProcessReadWriteLock lock;

    ReadWrite(CuratorFramework client, List<String> arguments) {
      lock = new InterProcessReadWriteLock(client, arguments.get(0));
    }

    @Override
    public List<String> call(String operation, List<String> arguments) throws Exception {
      switch (operation) {
        case "acquireRead":
          return Peer.words(acquire(lock.readLock(), arguments));
        case "acquireWrite":
          return Peer.words(acquire(lock.writeLock(), arguments));
        case "releaseRead":
          lock.readLock().release();
          return Peer.words();
        case "releaseWrite":
          lock.writeLock().release();
          return Peer.words();
        default:
          throw Peer.unknown(operation);
      }
    }
  }

  /** PATH PERMITS */
  static final class Semaphore implements Peer.Recipe {
    private final InterProcessSemaphoreV2 semaphore;
    private final Deque<Lease> held = new ArrayDeque<>();

    Semaphore(CuratorFramework client, List<String> arguments) {
      semaphore = new InterProcessSemaphoreV2(client, arguments.get(0), Integer.parseInt(arguments.get(1)));
    }

    @Override
    public List<String> call(String operation, List<String> arguments) throws Exception {
      switch (operation) {
        case "acquire": // LIMIT [COUNT]: all of them or none
          int count = arguments.size() > 1 ? Integer.parseInt(arguments.get(1)) : 1;
          Collection<Lease> permits =
              semaphore.acquire(count, Long.parseLong(arguments.get(0)), TimeUnit.MILLISECONDS);
          if (permits != null) held.addAll(permits);
          return Peer.words(permits != null);
        case "release": // one
          semaphore.returnLease(held.removeFirst());
          return Peer.words();
        case "participants":
          return new ArrayList<>(semaphore.getParticipantNodes());
        default:
          throw Peer.unknown(operation);
      }
    }
  }

  /** PATH MEMBERS */
  static final class DoubleBarrier implements Peer.Recipe {
    private final DistributedDoubleBarrier barrier;

    DoubleBarrier(CuratorFramework client, List<String> arguments) {
      barrier = new DistributedDoubleBarrier(client, arguments.get(0), Integer.parseInt(arguments.get(1)));
    }

    @Override
    public List<String> call(String operation, List<String> arguments) throws Exception {
      long limit = Long.parseLong(arguments.get(0));
      switch (operation) {
        case "enter":
          return Peer.words(barrier.enter(limit, TimeUnit.MILLISECONDS));
        case "leave":
          return Peer.words(barrier.leave(limit, TimeUnit.MILLISECONDS));
        default:
          throw Peer.unknown(operation);
      }
    }
  }
}
